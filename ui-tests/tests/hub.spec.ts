/** A user of a real JupyterHub has a cluster, of which another user sees nothing. */

import type { ChildProcessWithoutNullStreams } from 'node:child_process';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import type { Browser } from '@playwright/test';
import { expect, test } from '@playwright/test';

import { Lab } from './lab';

test.describe.configure({ timeout: 240_000 });

let hub: ChildProcessWithoutNullStreams;
let ended: Promise<unknown[]>;
let home: string;

test.beforeAll(async () => {
  hub = spawn('python', ['-m', 'tests.server.hub'], {
    cwd: join(import.meta.dirname, '..', '..')
  });
  ended = once(hub, 'exit');
  hub.stderr.pipe(process.stderr);
  const [said] = await Promise.race([once(hub.stdout, 'data'), ended]);
  home = String(said).trim();
});

test.afterAll(async () => {
  hub.stdin.end();
  // It fails where a process is left.
  expect(await ended).toEqual([0, null]);
});

test('under a Hub a cluster has its dashboard in Lab, and other users have no part in it', async ({
  browser
}) => {
  const lab = await logIn(browser, 'ada');
  await lab.openDialog();
  await lab.workers.fill('1');
  await lab.dialog.getByText('More options').click();
  await lab.dialog.getByLabel('Name').fill('hub-light');
  await lab.dialog.getByRole('button', { name: 'Start' }).click();
  const card = lab.card('hub-light');
  await expect(card).toContainText('1 of 1 worker ready', { timeout: 60_000 });
  await card.getByRole('button', { name: 'Dashboard' }).click();
  // Whatever else the Hub lets nobody frame.
  const plots = lab.dashboard().locator('canvas');
  await expect(plots.first()).toBeVisible({ timeout: 60_000 });
  await lab.page.screenshot({ path: 'screenshots/hub-dashboard.png' });

  const id = (await card.getAttribute('data-cluster')) ?? '';
  const eve = await logIn(browser, 'eve');
  const theirs = `${home}user/ada/gpucluster/`;
  for (const path of [
    'api/clusters',
    `api/clusters/${id}`,
    `dashboard/${id}/status`
  ]) {
    expect((await lab.page.request.get(theirs + path)).status(), path).toBe(
      200
    );
    expect((await eve.page.request.get(theirs + path)).status(), path).toBe(
      403
    );
  }
  await expect(eve.panel).toContainText('No cluster yet.');
  await eve.page.close();

  expect(processesNaming(id)).not.toEqual([]);
  await card.getByRole('button', { name: 'Stop' }).click();
  await lab.dialog.getByRole('button', { name: 'Stop cluster' }).click();
  await expect(card).toContainText('Stopped', { timeout: 60_000 });
  await expect.poll(() => processesNaming(id)).toEqual([]);
  await lab.page.close();
});

/** Log in with the form, in a browser of one's own, and come to Lab. */
async function logIn(browser: Browser, user: string): Promise<Lab> {
  const page = await browser.newPage();
  const { pathname } = new URL(home);
  const spawned = `${pathname}hub/spawn/${user}?next=${pathname}user/${user}/lab`;
  await page.goto(`${home}hub/login?next=${encodeURIComponent(spawned)}`);
  await page.getByLabel('Username').fill(user);
  await page.getByLabel('Password').fill('any');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.locator('.jp-LauncherCard').first().waitFor({ timeout: 60_000 });
  const lab = new Lab(page);
  await lab.openPanel();
  return lab;
}

/** The command lines of processes that a cluster has, by its id in them or in their variables. */
function processesNaming(id: string): string[] {
  const found: string[] = [];
  for (const pid of readdirSync('/proc').filter(name => /^\d+$/.test(name))) {
    try {
      const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
      const variables = readFileSync(`/proc/${pid}/environ`, 'utf8');
      if ((command + variables).includes(id)) {
        found.push(command.replaceAll('\0', ' '));
      }
    } catch {
      // It has just ended.
    }
  }
  return found;
}
