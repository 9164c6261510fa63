/** A card's name that is dragged over a notebook takes nothing else along. */

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { expect, test } from '@playwright/test';

import { theSite } from '../site';
import { Answers, cluster } from './answers';
import { Lab } from './lab';

const CELLS = 6;

test('a card that is dragged over a notebook selects neither text nor cells', async ({
  page
}) => {
  const answers = new Answers();
  await answers.install(page);
  answers.clusters(cluster());
  answers.set('GET clusters/abc123/client-code', {
    connect: 'client = connect("quiet-fox")'
  });
  writeNotebook('drag.ipynb');
  const lab = new Lab(page);
  await lab.open();
  await lab.run('docmanager:open', { path: 'drag.ipynb' });
  const notebook = page.locator('.jp-Notebook');
  const cells = notebook.locator('.jp-Cell');
  await expect(cells).toHaveCount(CELLS);
  await expect(notebook.getByRole('heading')).toHaveCount(CELLS / 2);
  const name = lab.card('quiet-fox').getByRole('heading');
  const selected = (): Promise<string> =>
    page.evaluate(() => String(window.getSelection()));

  const from = await name.boundingBox();
  const to = await notebook.boundingBox();
  if (from === null || to === null) {
    throw new Error('card or notebook cannot be seen');
  }
  await page.mouse.move(from.x + 5, from.y + 5);
  await page.mouse.down();
  // Over every cell, and back beside the panel.
  for (const part of [0.1, 0.3, 0.5, 0.2]) {
    await page.mouse.move(to.x + 150, to.y + to.height * part, { steps: 10 });
    expect(await selected()).toBe('');
    await expect(notebook.locator('.jp-mod-multiSelected')).toHaveCount(0);
  }
  await page.mouse.up();
  await expect(cells).toHaveCount(CELLS + 1);
  expect(await selected()).toBe('');
  const dropped = cells.filter({ hasText: 'connect("quiet-fox")' });
  await expect(dropped).toBeFocused();
  await expect(dropped).toHaveClass(/jp-mod-active/);
  await expect(notebook.locator('.jp-Cell.jp-mod-selected')).toHaveCount(1);

  // What a press did before it still does.
  await name.click();
  await expect(lab.card('quiet-fox')).toBeFocused();
  await name.dblclick();
  expect(await selected()).toContain('quiet');
});

/** Write a notebook of headings and code into the served folder. */
function writeNotebook(name: string): void {
  const cells = Array.from({ length: CELLS }, (_, index) =>
    index % 2 === 0
      ? {
          cell_type: 'markdown',
          id: `cell-${index}`,
          metadata: {},
          source: `# Step ${index}\n\nSome words.`
        }
      : {
          cell_type: 'code',
          id: `cell-${index}`,
          metadata: {},
          execution_count: null,
          outputs: [],
          source: `value = ${index}`
        }
  );
  writeFileSync(
    join(theSite().work, name),
    JSON.stringify({
      cells,
      metadata: {
        kernelspec: { display_name: 'Python 3', name: 'python3' }
      },
      nbformat: 4,
      nbformat_minor: 5
    })
  );
}
