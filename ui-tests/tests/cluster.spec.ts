import { expect, test } from '@playwright/test';

import { Lab } from './lab';

test.describe.configure({ timeout: 240_000 });

test('a cluster is started, watched, used from a notebook, scaled and stopped', async ({
  page
}) => {
  const lab = new Lab(page);
  await lab.open();
  await expect(lab.panel).toContainText('No cluster yet.');

  await lab.openDialog();
  await expect(lab.dialog).toContainText('This machine');
  await lab.workers.fill('2');
  await lab.dialog.getByText('More options').click();
  await lab.dialog.getByLabel('Name').fill('first-light');
  await lab.screenshot('1-dialog');
  await lab.dialog.getByRole('button', { name: 'Start' }).click();
  await expect(lab.dialog).toBeHidden();
  const card = lab.card('first-light');
  await expect(card).toBeFocused();
  await lab.screenshot('2-starting');
  await expect(card).toContainText('2 of 2 workers ready', { timeout: 60_000 });
  await expect(card).toContainText('Running');
  await lab.screenshot('3-running');

  await card.getByRole('button', { name: 'Dashboard' }).click();
  await expect(lab.dashboard().locator('canvas').first()).toBeVisible({
    timeout: 60_000
  });
  await lab.screenshot('4-dashboard');

  await card.getByRole('button', { name: 'Connect' }).click();
  const cells = page.locator('.jp-Notebook .jp-CodeCell');
  await expect(cells.first()).toContainText('first-light');
  await lab.screenshot('5-connect');
  await expect(page.getByText('Python 3 (ipykernel) | Idle')).toBeVisible({
    timeout: 60_000
  });
  await page.keyboard.press('Shift+Enter');
  await page.keyboard.press('Enter');
  await page.keyboard.type('client.submit(lambda: 41 + 1).result()');
  await page.keyboard.press('Shift+Enter');
  await expect(
    cells.nth(1).locator('.jp-OutputArea-output').last()
  ).toContainText('42', { timeout: 90_000 });
  await lab.screenshot('6-result');

  // What the magic prints goes on showing how things are, and leads to our tabs.
  await page.keyboard.press('Enter');
  await page.keyboard.insertText(
    '%load_ext jupyter_gpucluster\n%gpucluster list'
  );
  await page.keyboard.press('Shift+Enter');
  const live = cells
    .filter({ hasText: '%gpucluster list' })
    .getByRole('article', { name: 'first-light' });
  await expect(live).toContainText('2 of 2 workers ready', { timeout: 60_000 });
  await live.scrollIntoViewIfNeeded();
  await lab.screenshot('6-live');
  await live.getByRole('button', { name: 'Details' }).click();
  await expect(
    page.getByRole('region', { name: 'Details of first-light' })
  ).toBeVisible();
  await lab.run('application:close');

  // A client comes back with the kernel, where that was asked for.
  await lab.run('gpucluster:auto-connect');
  const restarted = lab.run('notebook:restart-kernel');
  await lab.dialog
    .getByRole('button', { name: 'Confirm Kernel Restart' })
    .click();
  await restarted;
  await expect(
    page
      .locator('.Toastify__toast')
      .filter({ hasText: 'is connected to first-light again' })
  ).toBeVisible({ timeout: 60_000 });
  await cells.nth(1).click();
  await page.keyboard.press('Shift+Enter');
  await expect(cells.nth(1)).toContainText('[1]', { timeout: 60_000 });
  await expect(
    cells.nth(1).locator('.jp-OutputArea-output').last()
  ).toContainText('42');

  // A card dropped on a notebook is a cell.
  const before = await cells.count();
  const from = await card.getByRole('heading').boundingBox();
  const to = await cells.nth(1).boundingBox();
  if (from === null || to === null) {
    throw new Error('card or cell cannot be seen');
  }
  await page.mouse.move(from.x + 5, from.y + 5);
  await page.mouse.down();
  await page.mouse.move(to.x + 50, to.y + 20, { steps: 10 });
  await page.mouse.up();
  await expect(cells).toHaveCount(before + 1);
  await expect(cells.filter({ hasText: 'connect("first-light")' })).toHaveCount(
    2
  );

  await card.getByRole('button', { name: 'Scale' }).click();
  await card.getByRole('spinbutton', { name: 'Workers' }).fill('1');
  await expect(card).toContainText('From 2 to 1: 1 worker fewer');
  await lab.screenshot('7-scale');
  await card.getByRole('button', { name: 'Apply' }).click();
  await expect(card).toContainText('1 of 1 worker ready', { timeout: 60_000 });

  await card.getByRole('button', { name: 'Stop' }).click();
  await expect(lab.dialog).toContainText('running tasks are cancelled');
  await lab.screenshot('8-stop');
  await lab.dialog.getByRole('button', { name: 'Stop cluster' }).click();
  await expect(card).toContainText('Stopped', { timeout: 60_000 });
  await lab.screenshot('9-stopped');
  await expect(live).toContainText('Stopped');

  await card.getByRole('button', { name: 'Show log' }).click();
  await expect(lab.dialog.locator('pre')).not.toBeEmpty();
  await lab.screenshot('10-log');
  await lab.dialog.getByRole('button', { name: 'Close' }).click();
  await card.getByRole('button', { name: 'Remove from history' }).click();
  await expect(card).toHaveCount(0);
});
