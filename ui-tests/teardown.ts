/** Ends every cluster that a failed test left, and removes the site's folder. */

import { spawnSync } from 'node:child_process';
import { rmSync } from 'node:fs';

import { theSite } from './site';

export default function teardown(): void {
  const site = theSite();
  spawnSync('jupyter', ['gpucluster', 'stop', '--all', '--wait', '30'], {
    env: { ...process.env, ...site.env },
    stdio: 'inherit'
  });
  rmSync(site.root, { recursive: true, force: true, maxRetries: 5 });
}
