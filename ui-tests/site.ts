/** Where the tested JupyterLab lives: its port, its token and its folders. */

import { randomUUID } from 'node:crypto';
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

interface ISite {
  root: string;
  work: string;
  port: string;
  token: string;
  basePath: string;
  baseUrl: string;
  env: Record<string, string>;
}

/** Make the site in Playwright's main process; its workers find it in their environment. */
export async function makeSite(): Promise<ISite> {
  if (process.env.GPUCLUSTER_UI_ROOT === undefined) {
    process.env.GPUCLUSTER_UI_ROOT = mkdtempSync(join(tmpdir(), 'gpc-ui-'));
    process.env.GPUCLUSTER_UI_PORT = String(await freePort());
    process.env.GPUCLUSTER_UI_TOKEN = randomUUID();
    furnish(theSite());
  }
  return theSite();
}

export function theSite(): ISite {
  const root = variable('GPUCLUSTER_UI_ROOT');
  const port = variable('GPUCLUSTER_UI_PORT');
  const token = variable('GPUCLUSTER_UI_TOKEN');
  // An address that breaks whatever forgets the base or encodes it twice.
  const basePath = '/user/a%40b/';
  return {
    root,
    work: join(root, 'work'),
    port,
    token,
    basePath,
    baseUrl: `http://127.0.0.1:${port}${basePath}`,
    env: {
      HOME: root,
      JUPYTER_CONFIG_DIR: join(root, 'config'),
      JUPYTER_DATA_DIR: join(root, 'data'),
      JUPYTER_RUNTIME_DIR: join(root, 'runtime'),
      JUPYTER_TOKEN: token,
      // Tests of batch systems install their commands.
      JUPYTER_GPUCLUSTER_LOGIN_NODE: 'no',
      // Pictures are taken on the simulated site.
      ...(process.env.GPUCLUSTER_UI_PICTURES
        ? { JUPYTER_GPUCLUSTER_DEMO: '1' }
        : {})
    }
  };
}

/** The shell command that starts the tested JupyterLab, to be run in its folder. */
export function serverCommand(site: ISite): string {
  return ['exec jupyter lab', ...serverArguments(site)].join(' ');
}

export function serverArguments(site: ISite): string[] {
  return [
    '--no-browser',
    '--allow-root',
    '--ServerApp.port_retries=0',
    '--ServerApp.ip=127.0.0.1',
    `--ServerApp.port=${site.port}`,
    `--ServerApp.base_url=${site.basePath}`,
    '--LabApp.expose_app_in_browser=True'
  ];
}

function furnish(site: ISite): void {
  mkdirSync(site.work);
  // Lab otherwise asks whether it may fetch news, in a box over what is tested.
  const settings = join(
    site.root,
    'config/lab/user-settings/@jupyterlab/apputils-extension'
  );
  mkdirSync(settings, { recursive: true });
  writeFileSync(
    join(settings, 'notification.jupyterlab-settings'),
    JSON.stringify({ fetchNews: 'false', checkForUpdates: false })
  );
}

function variable(name: string): string {
  const value = process.env[name];
  if (value === undefined) {
    throw new Error(`${name} is not set: run this through Playwright's config`);
  }
  return value;
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>(resolve => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  await new Promise(resolve => {
    server.close(resolve);
  });
  return port;
}
