import { expect, test } from '@playwright/test';

import { Answers, cluster, everyPhase } from './answers';
import { Lab } from './lab';

let lab: Lab;
let answers: Answers;

test.beforeEach(async ({ page }) => {
  answers = new Answers();
  await answers.install(page);
  lab = new Lab(page);
});

test('an empty panel says what to do', async () => {
  answers.clusters();
  await lab.open();
  await expect(lab.panel).toContainText('No cluster yet.');
  await expect(lab.panel.getByText('This machine')).toBeVisible();
  await lab.screenshot('empty');
});

test('a panel without an answer says that it is looking', async () => {
  answers.hold('GET clusters');
  answers.hold('GET profiles');
  await lab.open();
  await expect(lab.panel).toContainText('Looking for clusters…');
  await expect(lab.panel).toContainText('Reading profiles…');
  await lab.screenshot('loading');
});

test('an unreachable server is named, and trying again helps', async () => {
  answers.cut('GET clusters');
  answers.cut('GET profiles');
  await lab.open();
  await expect(lab.panel).toContainText('The clusters cannot be shown.');
  await lab.screenshot('unreachable');
  answers.clusters(cluster());
  await lab.button('Try again').first().click();
  await expect(lab.card('quiet-fox')).toBeVisible();
});

test('what is shown stays, marked as old, when answers cease', async () => {
  answers.clusters(cluster());
  await lab.open();
  await expect(lab.card('quiet-fox')).toContainText('2 of 2 workers ready');
  answers.cut('GET clusters');
  await expect(lab.panel).toContainText('what you see may be out of date');
  await expect(lab.card('quiet-fox')).toBeVisible();
  await lab.screenshot('stale');
});

test('every phase has its look', async ({ page }) => {
  await page.setViewportSize({ width: 1280, height: 1900 });
  answers.clusters(...everyPhase);
  await lab.open();
  for (const phase of [
    'Waiting',
    'Starting',
    'Running',
    'Degraded',
    'Stopping',
    'Unreachable',
    'Failed',
    'Stopped'
  ]) {
    await expect(
      lab.panel.locator('strong').getByText(phase, { exact: true })
    ).toBeVisible();
  }
  await expect(lab.card('limping-heron')).toContainText('not encrypted');
  await expect(lab.card('limping-heron')).toContainText('simulation');
  await expect(lab.card('limping-heron')).toContainText('ends with Jupyter');
  await expect(lab.card('broken-jay')).toContainText('killed by signal 9');
  await expect(
    lab.card('leaving-swift').getByRole('button', { name: /^Stop/ })
  ).toBeDisabled();
  await lab.screenshot('phases');
});

test('a refusal appears beside its field, and the dialog stays', async () => {
  answers.clusters();
  answers.set(
    'POST clusters',
    {
      message: 'The name is taken.',
      hint: 'Choose another.',
      detail: 'name'
    },
    422
  );
  await lab.open();
  await lab.openDialog();
  await expect(lab.dialog.getByLabel('Environment')).toBeEnabled();
  await lab.dialog.getByRole('button', { name: 'Start' }).click();
  await expect(lab.dialog.getByLabel('Name')).toBeVisible();
  await expect(lab.dialog.getByRole('alert')).toHaveText(
    'The name is taken. Choose another.'
  );
  await expect(lab.dialog.getByLabel('Name')).toBeFocused();
  await lab.screenshot('refusal');
  await lab.dialog.getByRole('button', { name: 'Cancel' }).click();
  await expect(lab.dialog).toBeHidden();
});

test('a wrong number is told before anything is sent', async () => {
  answers.clusters();
  answers.set('POST clusters', {}, 500);
  await lab.open();
  await lab.openDialog();
  await lab.workers.fill('0');
  await lab.dialog.getByRole('button', { name: 'Start' }).click();
  await expect(lab.dialog.getByRole('alert')).toHaveText(
    'Give a whole number of at least 1.'
  );
  await expect(lab.workers).toBeFocused();
});

test('a dashboard’s tab comes back with the page, and says when its cluster has ended', async ({
  page
}) => {
  await page.route('**/gpucluster/dashboard/**', route =>
    route.fulfill({ contentType: 'text/html', body: '<h1>plots</h1>' })
  );
  answers.clusters(cluster());
  await lab.open();
  // Lab saves its layout a while after the last change.
  const saved = page.waitForResponse(
    response =>
      response.url().includes('/api/workspaces/') &&
      (response.request().postData() ?? '').includes('abc123/status')
  );
  await lab.button('Dashboard of quiet-fox').click();
  await expect(lab.dashboard().getByText('plots')).toBeVisible();
  await saved;
  await page.reload();
  await expect(lab.dashboard().getByText('plots')).toBeVisible();
  answers.clusters(
    cluster({
      phase: 'failed',
      reason: 'The head was killed.',
      dashboard: null
    })
  );
  await expect(page.getByText('quiet-fox has ended.')).toBeVisible();
  await expect(
    page.getByRole('status').getByText('The head was killed.')
  ).toBeVisible();
  await lab.screenshot('ended-dashboard');
  await page.getByRole('button', { name: 'Show the cluster' }).click();
  await expect(lab.card('quiet-fox')).toBeFocused();
});

test('the keyboard reaches everything', async ({ page }) => {
  answers.clusters(cluster());
  await lab.open();
  await lab.button('Dashboard of quiet-fox').focus();
  for (const name of ['Connect', 'Scale', 'Stop', 'More']) {
    await page.keyboard.press('Tab');
    await expect(page.locator(':focus')).toHaveText(name);
  }
  await page.keyboard.press('Enter');
  await expect(page.getByRole('menu')).toBeVisible();
  await lab.screenshot('more-menu');
  await page.keyboard.press('Escape');
  await expect(page.locator(':focus')).toHaveText('More');
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await expect(lab.card('quiet-fox')).toContainText('tls://127.0.0.1:40123');
});

// Last, for Lab remembers the theme.
test('a narrow panel in a dark theme shows everything', async ({ page }) => {
  await page.setViewportSize({ width: 900, height: 1300 });
  answers.clusters(...everyPhase.slice(0, 4));
  await lab.open();
  await page.getByRole('menuitem', { name: 'Settings' }).click();
  await page
    .locator('#jp-mainmenu-settings')
    .getByText('Theme', { exact: true })
    .hover();
  await page.getByText('JupyterLab Dark', { exact: true }).click();
  await expect(
    page.locator('body[data-jp-theme-light="false"]')
  ).toBeAttached();
  await lab.narrow();
  await lab.card('early-lark').getByText('Details').click();
  await lab
    .card('early-lark')
    .getByRole('button', { name: /^Scale/ })
    .click();
  const overflowing = await lab.panel.evaluate(
    panel =>
      [...panel.querySelectorAll('.jp-gpucluster-Section')].filter(
        section => section.scrollWidth > section.clientWidth
      ).length
  );
  expect(overflowing).toBe(0);
  await lab.screenshot('narrow-dark');
});
