/** What of a page is there again when it is loaded anew. */

import { expect, test } from '@playwright/test';

import { Answers, cluster, job, timeline } from './answers';
import { Lab } from './lab';

let lab: Lab;
let answers: Answers;

test.beforeEach(async ({ page }) => {
  answers = new Answers();
  await answers.install(page);
  lab = new Lab(page);
});

test('tabs come back with the page, and the dashboard’s says when its cluster has ended', async ({
  page
}) => {
  await page.route('**/gpucluster/dashboard/**', route =>
    route.fulfill({ contentType: 'text/html', body: '<h1>plots</h1>' })
  );
  answers.clusters(cluster());
  answers.set('GET clusters/abc123/events', { events: timeline });
  answers.set('GET clusters/abc123/jobs', { jobs: [job()] });
  await lab.open();
  await lab.run('gpucluster:open-details', { cluster: 'abc123' });
  const details = page.getByRole('region', { name: 'Details of quiet-fox' });
  await expect(details.getByRole('row')).toHaveCount(2);
  // Lab saves its layout a while after the last change.
  const saved = page.waitForResponse(
    response =>
      response.url().includes('/api/workspaces/') &&
      ['abc123/status', 'jupyter-gpucluster-details:abc123'].every(tab =>
        (response.request().postData() ?? '').includes(tab)
      )
  );
  await lab.button('Dashboard of quiet-fox').click();
  await expect(lab.dashboard().getByText('plots')).toBeVisible();
  await saved;
  await page.reload();
  await expect(lab.dashboard().getByText('plots')).toBeVisible();
  await page.getByRole('tab', { name: 'quiet-fox: details' }).click();
  await expect(details.getByRole('row')).toHaveCount(2);
  await page.getByRole('tab', { name: 'quiet-fox', exact: true }).click();
  answers.clusters(
    cluster({
      phase: 'failed',
      reason:
        'Its scheduler is gone: it was killed, or the machine was restarted.',
      dashboard: null
    })
  );
  await lab.run('gpucluster:refresh');
  await expect(page.getByText('quiet-fox has ended.')).toBeVisible();
  await expect(
    page
      .getByRole('status')
      .getByText(
        'Its scheduler is gone: it was killed, or the machine was restarted.'
      )
  ).toBeVisible();
  await lab.screenshot('ended-dashboard');
  await page.getByRole('button', { name: 'Show the cluster' }).click();
  await expect(lab.card('quiet-fox')).toBeFocused();
  await page.getByRole('button', { name: 'Show its timeline' }).click();
  await expect(details.getByRole('tabpanel')).toContainText(
    'Scheduler started'
  );
});

test('what happened meanwhile is told on return, until it is put aside', async ({
  page
}) => {
  const now = Date.now() / 1000;
  answers.clusters(cluster());
  await lab.open();
  await page.waitForResponse(
    response =>
      response.url().includes('/api/workspaces/') &&
      (response.request().postData() ?? '').includes('jupyter-gpucluster:seen')
  );
  await expect(lab.card('quiet-fox')).toBeVisible();
  answers.clusters(cluster({ revision: 9 }));
  answers.set('GET clusters/abc123/events', {
    events: [
      ...timeline,
      { time: now + 1000, kind: 'lost', message: 'one ended', job: '' },
      { time: now + 1100, kind: 'worker', message: 'one is ready', job: '' }
    ]
  });
  await page.clock.setSystemTime(Date.now() + 3_600_000);
  await page.reload();
  await expect(lab.panel).toBeAttached();
  await lab.run('gpucluster:show-panel');
  const news = lab.card('quiet-fox').getByRole('note');
  await expect(news).toContainText('Since you were away: 1 worker replaced');
  await lab.screenshot('return');
  await news.getByRole('button').click();
  await expect(news).toHaveCount(0);
});
