/** What a cluster and its page outlive: the server's death, and a head that answers nobody. */

import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';

import type { FrameLocator } from '@playwright/test';
import { expect, test } from '@playwright/test';

import { serverArguments, theSite } from '../site';
import { Lab } from './lab';

const DEATHS = 10;
/** By then a scheduler has forgotten the session of a page, with which Bokeh alone cannot go on. */
const SESSION_ENDED_MS = 40_000;
/** How often figures change before they count as live; a page that loads changes a few times, too. */
const MOVES = 3;
/** Keeps two workers busy until standard input ends; the browser has to draw each task. */
const WORK = `
import sys, threading, time
from jupyter_gpucluster import connect

client = connect(sys.argv[1])
ended = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
while not ended.is_set():
    client.gather(client.map(lambda _: time.sleep(0.25), range(8), pure=False))
`;

test.describe.configure({ timeout: 240_000 });

/** Starts a server when a line comes; by then it has imported what takes seconds. */
const SERVER = `
import sys
import jupyter_gpucluster.server.app, notebook.app
from jupyterlab.labapp import LabApp

if sys.stdin.readline():
    LabApp.launch_instance()
`;

let server: ChildProcess | undefined;
/** The server after the next death. */
let successor: ChildProcess | undefined;

test.beforeEach(async ({ page }) => {
  // A test that failed took its server along.
  if (!(await answers())) {
    await startServer();
  }
  const { dialog } = new Lab(page);
  await page.addLocatorHandler(
    dialog.filter({ hasText: 'Server Connection Error' }),
    shown => shown.getByRole('button').last().click()
  );
});

test.afterAll(() => {
  server?.kill('SIGTERM');
  successor?.stdin?.end();
});

test('an open dashboard of a busy cluster reconnects after each restart of the server', async ({
  page
}) => {
  test.setTimeout(600_000);
  const lab = new Lab(page);
  await lab.open();
  await lab.start();
  const card = lab.panel.getByRole('article').first();
  await expect(card).toContainText('2 of 2 workers ready', { timeout: 60_000 });
  const cluster = (await card.getAttribute('data-cluster')) ?? '';
  const work = keepBusy(cluster);
  successor ??= prepareServer();
  const exceptions: string[] = [];
  page.on('pageerror', error => exceptions.push(error.message));
  try {
    await lab.run('gpucluster:open-dashboard', {
      cluster,
      plot: 'individual-progress'
    });
    await expectMoving(lab.dashboard());
    const tab = page.locator('.jp-gpucluster-Dashboard');
    for (let death = 1; death <= DEATHS; death += 1) {
      killServer();
      await expect(tab).toContainText('is not connected');
      await expect(tab.locator('iframe')).toBeHidden();
      if (death === 1) {
        await lab.screenshot('not-connected');
        await page.waitForTimeout(SESSION_ENDED_MS);
      }
      await startServer();
      await expectMoving(lab.dashboard());
      await expect(tab).not.toContainText('is not connected');
    }
    await page.screenshot({ path: 'screenshots/connected-again.png' });
    // The page of another session raises hundreds a minute; Bokeh a few at the loss itself.
    const before = exceptions.length;
    await page.waitForTimeout(3_000);
    expect(exceptions.slice(before)).toEqual([]);
    expect(exceptions.join()).not.toContain("isn't known");
    expect(before).toBeLessThan(DEATHS * 10);
  } finally {
    work.stdin?.end();
  }
  await endCluster(lab);
});

test('every plot of a layout is live again when only its websocket was cut', async ({
  page
}) => {
  // What passes websockets on between page and server, for a test to cut them.
  const cuts = new Set<() => void>();
  await page.routeWebSocket(/\/gpucluster\/dashboard\//, socket => {
    const upstream = socket.connectToServer();
    cuts.add(() => {
      void socket.close({ code: 1012 });
      void upstream.close();
    });
  });
  const lab = new Lab(page);
  await lab.open();
  await lab.start();
  const card = lab.panel.getByRole('article').first();
  await expect(card).toContainText('2 of 2 workers ready', { timeout: 60_000 });
  const cluster = (await card.getAttribute('data-cluster')) ?? '';
  const work = keepBusy(cluster);
  try {
    await lab.run('gpucluster:open-layout', { cluster });
    const tabs = page.locator('.jp-gpucluster-Dashboard');
    await expect(tabs).toHaveCount(3);
    const plots = [0, 1, 2].map(index =>
      tabs.nth(index).frameLocator('iframe')
    );
    for (const plot of plots) {
      await expectMoving(plot);
    }
    cuts.forEach(cut => cut());
    // Looked for within the page, for it lasts two seconds only.
    await page.waitForFunction(
      () =>
        [...document.querySelectorAll('.jp-gpucluster-Dashboard')].filter(tab =>
          tab.textContent?.includes('is not connected')
        ).length === 3
    );
    await expect(page.getByText('is not connected')).toHaveCount(0);
    for (const plot of plots) {
      await expectMoving(plot);
    }
  } finally {
    work.stdin?.end();
  }
  await endCluster(lab);
});

// In the last file, for no server is left after it.
test('a cluster outlives the server, and ends by force when its head hangs', async ({
  page
}) => {
  const lab = new Lab(page);
  await lab.open();
  await lab.start();
  const card = lab.panel.getByRole('article').first();
  await expect(card).toContainText('2 of 2 workers ready', { timeout: 60_000 });

  killServer();
  await expect(lab.panel).toContainText('what you see may be out of date', {
    timeout: 60_000
  });
  await expect(card).toContainText('Running');
  await startServer();
  // A page in use is back by itself.
  await expect(lab.panel).not.toContainText('may be out of date', {
    timeout: 10_000
  });
  await expect(card).toContainText('2 of 2 workers ready');

  process.kill(headProcess(await card.getAttribute('data-cluster')), 'SIGSTOP');
  await card.getByRole('button', { name: 'Stop' }).click();
  await lab.dialog.getByRole('button', { name: 'Stop cluster' }).click();
  const force = lab.dialog.getByRole('button', { name: 'Stop by force' });
  await expect(force).toBeVisible({ timeout: 30_000 });
  await lab.screenshot('frozen-head');
  await force.click();
  await expect(card).toContainText('Stopped', { timeout: 60_000 });
});

/** Start a process that works on a cluster, in which figures move. */
function keepBusy(cluster: string): ChildProcess {
  return spawn('python', ['-c', WORK, cluster], {
    env: { ...process.env, ...theSite().env },
    stdio: ['pipe', 'inherit', 'inherit']
  });
}

/** Expect figures that change again and again; those of a page that is cut off stand still. */
async function expectMoving(frame: FrameLocator): Promise<void> {
  const seen = new Set<string>();
  await expect
    .poll(
      async () => {
        const data = await figures(frame);
        if (data !== '') {
          seen.add(data);
        }
        return seen.size;
      },
      { timeout: 60_000 }
    )
    .toBeGreaterThan(MOVES);
}

/** The data of the plots that are drawn in a frame; '' while none is, or another page comes. */
function figures(frame: FrameLocator): Promise<string> {
  return frame
    .locator(':root')
    .evaluate(
      () => {
        interface IModel {
          type: string;
          data: object;
          references: () => Iterable<IModel>;
        }
        const { Bokeh } = window as unknown as {
          Bokeh?: { index: Record<string, { model: IModel }> };
        };
        // A session that only the page's memory has received is not among the views.
        const data = Object.values(Bokeh?.index ?? {})
          .flatMap(view => [...view.model.references()])
          .filter(({ type }) => type === 'ColumnDataSource')
          .map(source => source.data);
        return data.length > 0 ? JSON.stringify(data) : '';
      },
      undefined,
      { timeout: 20_000 }
    )
    .catch(() => '');
}

async function endCluster(lab: Lab): Promise<void> {
  const card = lab.panel.getByRole('article').first();
  await card.getByRole('button', { name: 'Stop' }).click();
  await lab.dialog.getByRole('button', { name: 'Stop cluster' }).click();
  await expect(card).toContainText('Stopped', { timeout: 60_000 });
  await card.getByRole('button', { name: 'Remove from history' }).click();
  await expect(lab.panel.getByRole('article')).toHaveCount(0);
}

/** Kill the server, and remove the file by which the next one is told from it. */
function killServer(): void {
  const folder = theSite().env.JUPYTER_RUNTIME_DIR;
  const [name, pid] = readdirSync(folder)
    .map(file => /^jpserver-(\d+)\.json$/.exec(file))
    .find(found => found !== null) as RegExpExecArray;
  process.kill(Number(pid), 'SIGKILL');
  rmSync(join(folder, name));
}

/** Whether a server answers. */
function answers(): Promise<boolean> {
  return fetch(`${theSite().baseUrl}api`).then(
    answer => answer.ok,
    () => false
  );
}

/** Start a server in the place of the one that is gone. */
async function startServer(): Promise<void> {
  server = successor ?? prepareServer();
  server.stdin?.write('start\n');
  successor = prepareServer();
  await expect.poll(answers, { timeout: 60_000, intervals: [100] }).toBe(true);
}

function prepareServer(): ChildProcess {
  const site = theSite();
  return spawn('python', ['-c', SERVER, ...serverArguments(site)], {
    cwd: site.work,
    env: { ...process.env, ...site.env },
    stdio: ['pipe', 'inherit', 'inherit']
  });
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
