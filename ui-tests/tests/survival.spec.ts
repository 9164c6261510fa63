/** What a cluster and its page outlive: the server's death, and a head that answers nobody. */

import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { expect, test } from '@playwright/test';

import { serverCommand, theSite } from '../site';
import { Lab } from './lab';

test.describe.configure({ timeout: 240_000 });

// In the last file, for no server is left after it.
test('a cluster outlives the server, and ends by force when its head hangs', async ({
  page
}) => {
  const lab = new Lab(page);
  await page.addLocatorHandler(
    lab.dialog.filter({ hasText: 'Server Connection Error' }),
    dialog => dialog.getByRole('button').last().click()
  );
  await lab.open();
  await lab.button('Try on this machine (2 CPU workers)').click();
  const card = lab.panel.getByRole('article').first();
  await expect(card).toContainText('2 of 2 workers ready', { timeout: 60_000 });

  process.kill(serverProcess(), 'SIGKILL');
  await expect(lab.panel).toContainText('what you see may be out of date', {
    timeout: 60_000
  });
  await expect(card).toContainText('Running');
  const server = await startServer();
  try {
    await lab.button('Try again').click();
    await expect(lab.panel).not.toContainText('may be out of date');
    await expect(card).toContainText('2 of 2 workers ready');

    process.kill(
      headProcess(await card.getAttribute('data-cluster')),
      'SIGSTOP'
    );
    await card.getByRole('button', { name: 'Stop' }).click();
    await lab.dialog.getByRole('button', { name: 'Stop cluster' }).click();
    const force = lab.dialog.getByRole('button', { name: 'Stop by force' });
    await expect(force).toBeVisible({ timeout: 30_000 });
    await lab.screenshot('frozen-head');
    await force.click();
    await expect(card).toContainText('Stopped', { timeout: 60_000 });
  } finally {
    server.kill('SIGTERM');
  }
});

/** The process of the server that the tests began with. */
function serverProcess(): number {
  const [, pid] = readdirSync(theSite().env.JUPYTER_RUNTIME_DIR)
    .map(name => /^jpserver-(\d+)\.json$/.exec(name))
    .find(found => found !== null) as RegExpExecArray;
  return Number(pid);
}

/** Start a server in the place of the one that is gone. */
async function startServer(): Promise<ReturnType<typeof spawn>> {
  const site = theSite();
  const server = spawn('sh', ['-c', serverCommand(site)], {
    cwd: site.work,
    env: { ...process.env, ...site.env },
    stdio: 'inherit'
  });
  await expect
    .poll(
      () =>
        fetch(`${site.baseUrl}api`).then(
          answer => answer.ok,
          () => false
        ),
      { timeout: 60_000 }
    )
    .toBe(true);
  return server;
}

function headProcess(cluster: string | null): number {
  const file = join(
    theSite().env.JUPYTER_DATA_DIR,
    'gpucluster/clusters',
    cluster ?? '',
    'process.json'
  );
  return (JSON.parse(readFileSync(file, 'utf8')) as { pid: number }).pid;
}
