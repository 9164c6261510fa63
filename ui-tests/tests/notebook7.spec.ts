/** Notebook 7 shows one document at a time: what else there is opens in browser tabs. */

import { expect, test } from '@playwright/test';

import { theSite } from '../site';
import { Answers, cluster, job, timeline } from './answers';

test('Notebook 7 shows the panel on demand, and opens the rest in browser tabs', async ({
  page
}) => {
  const answers = new Answers();
  await answers.install(page);
  answers.clusters(cluster());
  answers.set('GET clusters/abc123/events', { events: timeline });
  answers.set('GET clusters/abc123/jobs', { jobs: [job()] });
  await page
    .context()
    .route('**/gpucluster/dashboard/**', route =>
      route.fulfill({ contentType: 'text/html', body: '<h1>plots</h1>' })
    );
  await page.goto(`tree?token=${theSite().token}`);
  await page.getByRole('menuitem', { name: 'View' }).click();
  await page
    .locator('#jp-mainmenu-view')
    .getByText('Show GPU clusters', { exact: true })
    .first()
    .click();
  const panel = page.locator('#jupyter-gpucluster-panel');
  const card = panel.getByRole('article', { name: 'quiet-fox' });
  await expect(card).toContainText('2 of 2 workers ready');
  await page.screenshot({ path: 'screenshots/notebook7.png' });

  const dashboard = page.waitForEvent('popup');
  await card.getByRole('button', { name: 'Dashboard' }).click();
  await expect((await dashboard).getByText('plots')).toBeVisible();

  await card.getByText('Details').click();
  const popup = page.waitForEvent('popup');
  await card.getByRole('button', { name: 'Open in a tab' }).click();
  const details = (await popup).getByRole('region', {
    name: 'Details of quiet-fox'
  });
  await expect(details.getByRole('row')).toHaveCount(2);
});
