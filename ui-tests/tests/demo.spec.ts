/** What the simulated site lets happen: a node fails, a cluster stops, jobs reach their walltime. */

import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

import { expect, test } from '@playwright/test';

import { theSite } from '../site';
import { Lab } from './lab';

const CHECKOUT = join(import.meta.dirname, '..', '..');

test.describe.configure({ timeout: 300_000 });

let lab: Lab;

test.beforeEach(async ({ page }) => {
  await page.setViewportSize({ width: 1280, height: 1000 });
  lab = new Lab(page);
  await lab.open();
});

/** Only the terminal knows the simulated site: Lab offers what it offers elsewhere. */
function run(command: string, ...words: string[]): string {
  const done = spawnSync(command, words, {
    cwd: CHECKOUT,
    env: { ...process.env, ...theSite().env, JUPYTER_GPUCLUSTER_DEMO: '1' },
    encoding: 'utf8'
  });
  expect(done.status, done.stderr + done.stdout).toBe(0);
  return done.stdout;
}

function gpucluster(...words: string[]): string {
  return run('jupyter', 'gpucluster', ...words);
}

function site(...words: string[]): string {
  return run('python3', '-m', 'tools.demo_site', ...words);
}

const started: string[] = [];

// Other files expect an empty history.
test.afterEach(() => {
  for (const name of started.splice(0)) {
    gpucluster('stop', name, '--wait');
    gpucluster('forget', name);
  }
});

function start(profile: string, name: string, gpus: number): void {
  started.push(name);
  gpucluster('start', profile, '--name', name, '--gpus', `${gpus}`);
}

test('a failed node comes first, scripts are those that ran, and a stop is not red', async ({
  page
}) => {
  start('demo-quick', 'sunny-hare', 4);
  const card = lab.card('sunny-hare');
  await expect(card).toBeVisible();
  await expect(async () => {
    site('push', '5');
    await expect(card).toContainText('4 of 4 simulated GPUs ready', {
      timeout: 5000
    });
  }).toPass();
  const { jobs } = JSON.parse(gpucluster('show', 'sunny-hare', '--json')) as {
    jobs: { nodes: string[] }[];
  };
  const nodes = [...new Set(jobs.flatMap(job => job.nodes))];
  nodes.forEach(node => site('fail', node, '3600'));
  const loss = card.getByRole('note');
  await expect(loss).toContainText(
    /failed at .*: 4 GPUs lost with what was in their memory; [24] replacements are (waiting|starting)\./
  );
  await expect(loss).toContainText(nodes[0]);
  // Nothing but the name comes before it.
  expect(
    await card.evaluate(node => node.children[1].getAttribute('role'))
  ).toBe('note');
  const notice = page.locator('.Toastify__toast');
  await expect(notice).toContainText('4 GPUs lost with what was in their');
  await expect(notice).toContainText('sunny-hare (simulation)');
  await lab.screenshot('loss');
  await lab.setTheme('JupyterLab Dark');
  await lab.narrow();
  await lab.screenshot('loss-dark-narrow');
  await lab.setTheme('JupyterLab Light');

  await expect(async () => {
    site('push', '5');
    await expect(card).toContainText('4 of 4 simulated GPUs ready', {
      timeout: 5000
    });
  }).toPass();
  await expect(loss).toContainText('4 replacements are ready.');
  const { id } = JSON.parse(gpucluster('show', 'sunny-hare', '--json')) as {
    id: string;
  };
  await card.getByText('Details').click();
  await card.getByRole('button', { name: 'Open in a tab' }).click();
  const details = page.getByRole('region', { name: 'Details of sunny-hare' });
  await details.getByRole('tab', { name: 'Script' }).click();
  await expect(
    details.getByRole('region', { name: `Submit command of gpc-${id}-1` })
  ).toContainText('--count 2');
  await lab.screenshot('scripts');
  gpucluster('scale', 'sunny-hare', '--gpus', '6');
  const newest = details.getByRole('region', {
    name: /^Submit command of/
  });
  await expect(newest.first()).toContainText('--count 1');
  // Nodes whose loss is noticed one after the other bring a submission each.
  const all = details.getByRole('button', { name: /^Show all/ });
  const showAll = async (): Promise<void> => {
    if (await all.isVisible()) {
      await all.click();
    }
  };
  await showAll();
  await expect(
    details.getByRole('region', { name: `Submit command of gpc-${id}-1` })
  ).toContainText('--count 2');

  await page.evaluate(() => {
    const told: string[] = [];
    const look = (): void => {
      const [found] = document.querySelectorAll(
        '.jp-gpucluster-Card[data-phase="stopping"]'
      );
      if (found !== undefined) {
        told.push(
          found.querySelector('[data-kind="lost"]') === null
            ? (found.textContent ?? '')
            : 'red'
        );
      }
    };
    new MutationObserver(look).observe(document.body, {
      subtree: true,
      childList: true,
      characterData: true,
      attributes: true
    });
    Object.assign(window, { told });
  });
  gpucluster('stop', 'sunny-hare');
  await expect(card).toContainText('Stopped', { timeout: 60_000 });
  const told = await page.evaluate(
    () => (window as unknown as { told: string[] }).told
  );
  expect(told.join()).not.toMatch(/lost|red/);
  await showAll();
  await expect(
    details.getByRole('region', { name: `Job script of gpc-${id}-1` })
  ).toContainText('#!/bin/sh');
  await lab.screenshot('scripts-ended');
});

test('the end of a job by its walltime is readable in a narrow panel', async ({
  page
}) => {
  start('demo-walltime', 'short-stork', 1);
  const card = lab.card('short-stork');
  await expect(async () => {
    site('push', '5');
    await expect(card).toContainText('1 of 1 simulated GPU ready', {
      timeout: 5000
    });
  }).toPass();
  await card.getByText('Details').click();
  await expect(card.locator('dt', { hasText: 'Job ends' })).toBeVisible();
  await expect(card).toContainText('(a new one follows)');
  for (const width of [300, 220]) {
    await page.addStyleTag({
      content: `.jp-gpucluster-Section { max-width: ${width}px !important; }`
    });
    expect(await lab.narrowestFact(card)).toBeGreaterThan(0.4);
    await lab.screenshot(`walltime-${width}`);
  }
});
