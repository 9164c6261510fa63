/** Takes the pictures of the documentation, in both themes, on the simulated site (`jlpm pictures`). */

import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

import type { Locator, Page } from '@playwright/test';
import { expect, test } from '@playwright/test';

import { theSite } from '../site';
import { Answers, cluster } from './answers';
import { Lab } from './lab';

const IMAGES = join(import.meta.dirname, '..', '..', 'docs', 'images');
const THEMES = { light: 'JupyterLab Light', dark: 'JupyterLab Dark' };

test.describe.configure({ timeout: 420_000 });

let lab: Lab;

test.beforeEach(async ({ page }) => {
  await page.setViewportSize({ width: 1120, height: 720 });
  lab = new Lab(page);
  // The batch systems of the machine that takes the pictures are not the reader's.
  await page.route('**/gpucluster/api/profiles*', async route => {
    const response = await route.fetch();
    const told = (await response.json()) as object;
    await route.fulfill({ response, json: { ...told, without_profile: [] } });
  });
});

/** Take a picture of a part, or of the page, in each theme. */
async function picture(name: string, part: Locator | Page): Promise<void> {
  for (const [word, theme] of Object.entries(THEMES)) {
    await lab.setTheme(theme);
    await part.screenshot({
      path: join(IMAGES, `${name}-${word}.png`),
      animations: 'disabled'
    });
  }
}

function gpucluster(...words: string[]): void {
  const done = spawnSync('jupyter', ['gpucluster', ...words], {
    env: { ...process.env, ...theSite().env },
    encoding: 'utf8'
  });
  expect(done.stderr + done.stdout).not.toContain('Traceback');
}

test('a day on the simulated site', async ({ page }) => {
  await lab.open();
  await expect(lab.panel).toContainText('No cluster yet.');
  await expect(lab.button('Start on This machine')).toBeVisible();
  await picture('empty', lab.panel);

  // The dialog, and what it would submit.
  await lab.openDialog();
  await lab.dialog.getByText('busy queue').click();
  const gpus = lab.dialog.getByRole('spinbutton', { name: 'GPUs' });
  await gpus.fill('8');
  await expect(lab.dialog).toContainText('8 GPUs = 2 jobs of 4.');
  await expect(lab.dialog).toContainText('Keeps running without Jupyter');
  await picture('dialog', lab.dialog.locator('.jp-Dialog-content'));
  await lab.dialog.getByText('Job script and submit command').click();
  await lab.dialog
    .getByRole('region', { name: 'Job script' })
    .scrollIntoViewIfNeeded();
  await picture('script', lab.dialog.locator('.jp-Dialog-content'));
  await lab.dialog.getByText('More options').click();
  await lab.dialog.getByRole('textbox', { name: 'Name' }).fill('night-run');
  await lab.dialog.getByRole('button', { name: 'Start' }).click();
  await expect(lab.dialog).toBeHidden();
  const waiting = lab.card('night-run');
  await expect(waiting).toContainText('Waiting');
  await picture('waiting', waiting);
  await waiting.getByRole('button', { name: 'Cancel' }).click();
  await lab.dialog.getByRole('button', { name: 'Stop cluster' }).click();
  await expect(waiting).toContainText('Stopped', { timeout: 60_000 });

  // One that fails, and the way back.
  gpucluster('start', 'demo-refused', '--name', 'long-shot', '--gpus', '1');
  const failed = lab.card('long-shot');
  await expect(failed).toContainText('Failed', { timeout: 60_000 });
  await picture('failed', failed);
  await failed.getByRole('button', { name: /^Fix and retry/ }).click();
  await expect(lab.dialog.getByRole('alert')).toBeVisible();
  await expect(lab.dialog).toContainText('Keeps running without Jupyter');
  await picture('fix', lab.dialog.locator('.jp-Dialog-content'));
  await lab.dialog.getByRole('button', { name: 'Cancel' }).click();

  // One that works.
  gpucluster('start', 'demo-quick', '--name', 'first-light', '--gpus', '2');
  const card = lab.card('first-light');
  await expect(card).toContainText('2 of 2 simulated GPUs ready', {
    timeout: 90_000
  });
  await picture('running', card);
  await card.getByRole('button', { name: 'Connect' }).click();
  const cells = page.locator('.jp-Notebook .jp-CodeCell');
  await expect(cells.first()).toContainText('first-light');
  await expect(page.getByText('Python 3 (ipykernel) | Idle')).toBeVisible({
    timeout: 60_000
  });
  // The cell that comes next is in edit mode.
  await page.keyboard.press('Shift+Enter');
  await page.keyboard.insertText(
    [
      'import dask.array as da',
      '',
      'x = da.random.random((8000, 8000), chunks=(1000, 1000))',
      'float((x @ x.T).mean().compute())'
    ].join('\n')
  );
  // The GPUs are simulated, so plots of them would be empty.
  for (const plot of ['individual-task-stream', 'individual-workers-memory']) {
    await lab.run('gpucluster:open-dashboard', { plot });
  }
  await lab.run('gpucluster:save-layout');
  for (const title of ['Task stream', 'Memory by worker']) {
    await page
      .getByRole('tab', { name: `first-light (simulation): ${title}` })
      .click();
    await lab.run('application:close');
  }
  await lab.run('gpucluster:open-layout');
  const stream = page.frameLocator('iframe[src$="individual-task-stream"]');
  await expect(stream.locator('canvas').first()).toBeVisible({
    timeout: 60_000
  });
  await page.getByRole('tab', { name: /^Untitled/ }).click();
  await page.keyboard.press('Shift+Enter');
  await expect(
    cells.nth(1).locator('.jp-OutputArea-output').last()
  ).toContainText('20', { timeout: 120_000 });
  await picture('lab', page);

  await card.getByRole('button', { name: 'Scale' }).click();
  await card.getByRole('spinbutton', { name: 'GPUs' }).fill('4');
  await expect(card).toContainText('From 2 to 4');
  await picture('scale', card);
  await card.getByRole('button', { name: 'Cancel' }).click();

  await lab.run('gpucluster:open-details', { cluster: await idOf(card) });
  const details = page.locator('.jp-gpucluster-DetailsTab');
  await expect(details.getByRole('row').first()).toBeVisible();
  await picture('details', page);
  await details.getByRole('tab', { name: 'Timeline' }).click();
  await picture('timeline', page);

  await card.getByRole('button', { name: 'Stop' }).click();
  await picture('stop', lab.dialog.locator('.jp-Dialog-content'));
  await lab.dialog.getByRole('button', { name: 'Stop cluster' }).click();
  await expect(card).toContainText('Stopped', { timeout: 60_000 });
  await picture('history', lab.panel);
});

test('states that take hours or an accident', async ({ page }) => {
  await page.setViewportSize({ width: 1120, height: 900 });
  const answers = new Answers();
  await answers.install(page);
  const now = Date.now() / 1000;
  const gpus = [0, 1, 2, 3].map(index => ({
    worker: `gpc-abc123-1_${index}`,
    host: 'gpu07',
    index,
    name: 'Example GPU',
    utilization: 87 - index,
    memory_used: 31e9,
    memory_total: 80e9,
    power: 310,
    temperature: 61,
    slowed: [],
    ecc_errors: 0
  }));
  const site = {
    profile: 'example',
    title: 'Example GPU partition',
    backend: 'slurm',
    unit: 'GPUs',
    target: { minimum: 4, maximum: 4 }
  };
  answers.clusters(
    cluster({
      ...site,
      gpus,
      gpu_hours: 7.4,
      words: '4 of 4 GPUs ready',
      phase_since: now - 6600,
      workers: { asked: 4, pending: 0, starting: 0, ready: 4, lost: 0 },
      memory_used: 190e9,
      memory_limit: 960e9,
      clocks: [
        { name: 'maximum lifetime', seconds: 7200, ends: now + 560, job: '' }
      ],
      gpu_hours_estimate: 8
    }),
    cluster({
      ...site,
      id: 'd',
      name: 'limping-heron',
      phase: 'degraded',
      words: '3 of 4 GPUs ready, 1 lost',
      reason: 'Node gpu09 failed, and the budget for replacements is used up.',
      workers: { asked: 4, pending: 0, starting: 0, ready: 3, lost: 1 },
      gpu_hours: 2.1,
      stale_since: now - 90
    }),
    cluster({
      ...site,
      id: 's',
      name: 'early-lark',
      phase: 'starting',
      words: '1 of 4 GPUs ready, 1 waiting, 2 starting',
      workers: { asked: 4, pending: 1, starting: 2, ready: 1, lost: 0 }
    }),
    cluster({
      ...site,
      id: 'x',
      name: 'leaving-swift',
      phase: 'stopping',
      words: 'stopping: 1 job still ending'
    }),
    cluster({
      ...site,
      id: 'u',
      name: 'silent-wren',
      phase: 'unreachable',
      words: '',
      reason:
        'Its scheduler runs on login2 and shows no sign of life. To end the cluster: jupyter gpucluster stop --force silent-wren',
      dashboard: null
    })
  );
  await lab.open();
  await picture('ending', page.locator('.Toastify__toast'));
  await page.getByRole('button', { name: 'Hide notification' }).click();
  await picture('clock', lab.card('quiet-fox'));
  await picture('degraded', lab.card('limping-heron'));
  await picture('starting', lab.card('early-lark'));
  await picture('stopping', lab.card('leaving-swift'));
  await picture('unreachable', lab.card('silent-wren'));
  answers.set('GET clusters/abc123/workers', {
    workers: gpus.map(({ worker }, index) => ({
      name: worker,
      job: 'gpc-abc123-1_0',
      host: 'gpu07',
      status: index === 2 ? 'paused' : 'running',
      memory_used: index === 2 ? 192e9 : 44e9 + index * 1e9,
      memory_limit: 240e9,
      tasks: 6 - index,
      silent: 0.5,
      can_be_dropped: true,
      per_job: 4
    }))
  });
  await lab.run('gpucluster:open-details', {
    cluster: 'abc123',
    section: 'workers'
  });
  const workers = page.locator('.jp-gpucluster-DetailsTab');
  await expect(workers.getByRole('row').nth(1)).toContainText('paused');
  await picture('workers', workers);
  answers.cut('GET clusters');
  await lab.run('gpucluster:refresh');
  await expect(lab.panel).toContainText('what you see may be out of date');
  await picture('stale', lab.panel);
});

async function idOf(card: Locator): Promise<string> {
  return (await card.getAttribute('data-cluster')) ?? '';
}
