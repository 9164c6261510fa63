/** Starts a JupyterLab of its own, with all that it writes in a folder that goes away afterwards. */

import { defineConfig } from '@playwright/test';

import { makeSite, serverCommand } from './site';

const site = await makeSite();

export default defineConfig({
  testDir: 'tests',
  // Pictures for the documentation are made on demand only.
  testIgnore: process.env.GPUCLUSTER_UI_PICTURES ? [] : ['**/pictures.spec.ts'],
  workers: 1,
  retries: 0,
  forbidOnly: process.env.CI !== undefined,
  timeout: 120_000,
  expect: { timeout: 20_000 },
  reporter: [['list']],
  globalTeardown: './teardown.ts',
  use: {
    baseURL: site.baseUrl,
    browserName: 'chromium',
    viewport: { width: 1280, height: 800 },
    // One picture of a failure is enough; a picture of each action is work for a busy machine.
    trace: { mode: 'retain-on-failure', screenshots: false },
    screenshot: 'only-on-failure',
    launchOptions: {
      executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
      args: [
        '--no-sandbox',
        '--disable-gpu',
        '--disable-quic',
        '--no-first-run',
        '--disable-background-networking',
        '--disable-component-update',
        '--disable-sync'
      ]
    }
  },
  webServer: {
    command: serverCommand(site),
    cwd: site.work,
    env: site.env,
    url: `${site.baseUrl}api`,
    timeout: 120_000,
    reuseExistingServer: false,
    gracefulShutdown: { signal: 'SIGTERM', timeout: 20_000 }
  }
});
