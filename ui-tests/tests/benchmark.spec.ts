/** The bundled notebook measures a running cluster in the browser, while another page looks on. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { expect, test } from '@playwright/test';

import { theSite } from '../site';
import { Lab } from './lab';

test.describe.configure({ timeout: 240_000 });

interface IOutput {
  output_type: string;
  text?: string[];
  data?: Record<string, unknown>;
}

test('the bundled notebook measures a cluster, which a second page shows and stops', async ({
  page,
  context
}) => {
  const lab = new Lab(page);
  await lab.open();
  const second = new Lab(await context.newPage());
  await second.page.goto('lab');
  await second.openPanel();
  await expect(second.panel).toContainText('No cluster');

  // One click and one Shift+Enter lead to a live task stream.
  await lab.button('Try on this machine (2 CPU workers)').click();
  const example = page.locator('.jp-Notebook .jp-CodeCell').first();
  await expect(example).toContainText('square');
  await expect(example.locator('.cm-content')).toBeVisible();
  await page.keyboard.press('Shift+Enter');
  await expect(lab.dashboard().locator('canvas').first()).toBeVisible({
    timeout: 60_000
  });
  await expect(example.locator('.jp-OutputArea-output').last()).toContainText(
    '2646700',
    { timeout: 90_000 }
  );
  await lab.screenshot('first-run');
  const card = lab.panel.getByRole('article').first();
  await expect(card).toContainText('2 of 2 workers ready', { timeout: 60_000 });
  const cluster = await card.getByRole('heading').innerText();
  // By itself: nobody has touched that page.
  await expect(second.card(cluster)).toContainText('2 of 2 workers ready');

  await lab.button(`More for ${cluster}`).click();
  await page.getByRole('menuitem', { name: 'Benchmark cluster…' }).click();
  await lab.dialog
    .getByRole('combobox', { name: 'Which benchmark?' })
    .selectOption('Parallel sum');
  await lab.screenshot('benchmark-choice');
  await lab.dialog.getByRole('button', { name: 'Open notebook' }).click();
  const cells = page.locator('.jp-NotebookPanel:visible .jp-CodeCell');
  const parameters = cells.filter({ hasText: 'report_file = ""' });
  await expect(parameters).toContainText(`cluster_name = "${cluster}"`);
  await expect(page.getByText('Python 3 (ipykernel) | Idle')).toBeVisible({
    timeout: 60_000
  });
  // The smallest that shows everything.
  await parameters.locator('.cm-content').click();
  await page.keyboard.press('Control+End');
  await page.keyboard.insertText(
    '\nshape, chunks, repeats = (400, 400), (100, 100), 1'
  );
  await page.getByRole('menuitem', { name: 'Run', exact: true }).click();
  await page
    .locator('#jp-mainmenu-run')
    .getByText('Run All Cells', { exact: true })
    .click();
  await expect(cells.last()).toContainText('[6]:', { timeout: 90_000 });
  // Lab draws only the cells that are in sight, and moves the rest meanwhile.
  const table = page.getByText('1 worker earlier, 2 later');
  await expect(async () => {
    await table.scrollIntoViewIfNeeded();
    await expect(table).toBeInViewport({ timeout: 1000 });
  }).toPass();
  await expect(
    page.locator('.jp-Notebook .jp-OutputArea-output img').last()
  ).toBeInViewport();
  await page.screenshot({ path: 'screenshots/benchmark.png' });
  await lab.run('docmanager:save');
  const outputs = outputsOf('parallel_sum.ipynb');
  expect(outputs.map(({ output_type }) => output_type)).not.toContain('error');
  expect(
    outputs.filter(({ data }) => data !== undefined && 'image/png' in data)
  ).toHaveLength(2);
  expect(outputs.flatMap(({ text }) => text ?? []).join('')).toContain(
    'Wall time create data + computation time: '
  );

  // The notebook leaves it running; the other page ends it.
  await expect(card).toContainText('Running');
  await second.button(`Stop ${cluster}`).click();
  await second.dialog.getByRole('button', { name: 'Stop cluster' }).click();
  await expect(card).toContainText('Stopped', { timeout: 60_000 });
  await expect(second.card(cluster)).toContainText('Stopped');
  await lab.button(`Remove from history: ${cluster}`).click();
  await expect(card).toHaveCount(0);
});

/** What the cells of a saved notebook have put out. */
function outputsOf(path: string): IOutput[] {
  const { cells } = JSON.parse(
    readFileSync(join(theSite().work, path), 'utf8')
  ) as { cells: { outputs?: IOutput[] }[] };
  return cells.flatMap(({ outputs }) => outputs ?? []);
}
