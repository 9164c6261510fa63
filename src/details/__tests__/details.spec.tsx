import {
  cleanup,
  fireEvent,
  render,
  screen,
  waitFor
} from '@testing-library/react';
import * as React from 'react';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { ClustersModel } from '../../model/model';
import type { ICluster, IJobScript, IWorker } from '../../model/tokens';
import { DetailsPage } from '../detailsPage';
import { moment } from '../../model/words';
import {
  aCluster,
  aLoss,
  FakeServer,
  someActions,
  trans
} from '../../__tests__/fakes';

const actions = someActions();
let server: FakeServer;
let model: ClustersModel;

beforeEach(() => {
  server = new FakeServer();
  model = new ClustersModel({ api: server.api });
  server.routes['GET clusters/c1/jobs'] = () => ({ body: { jobs: [] } });
  server.routes['GET clusters/c1/events'] = () => ({ body: { events: [] } });
  server.routes['POST profiles/local/script'] = () => ({
    body: { text: 'of the profile', command: 'sbatch --array=0-8' }
  });
});

afterEach(() => {
  cleanup();
  model.dispose();
});

async function page(cluster: ICluster, section: string): Promise<void> {
  server.clusters = [cluster];
  await model.refresh();
  render(
    <DetailsPage
      model={model}
      cluster={cluster.id}
      section={section}
      actions={actions}
      onSection={() => undefined}
      onShowCluster={() => undefined}
      trans={trans}
    />
  );
}

function ran(...scripts: IJobScript[]): void {
  server.routes['GET clusters/c1/scripts'] = () => ({ body: { scripts } });
}

function script(number: number): IJobScript {
  return {
    mark: `gpc-c1-${number}`,
    text: `#!/bin/sh\nexec worker ${number}\n`,
    command: `sbatch gpc-c1-${number}.sh`,
    written: 1_700_000_000 + number
  };
}

function aWorker(name: string, changes: Partial<IWorker> = {}): IWorker {
  return {
    name,
    job: name,
    host: 'n1',
    status: 'running',
    memory_used: 1024 ** 3,
    memory_limit: 4 * 1024 ** 3,
    tasks: 3,
    silent: 0.4,
    can_be_dropped: true,
    per_job: 1,
    ...changes
  };
}

describe('the workers of a cluster', () => {
  it('are listed with the worst first', async () => {
    const workers = [
      aWorker('well'),
      aWorker('full', { memory_used: 3 * 1024 ** 3 }),
      aWorker('silent', { silent: 61, host: 'n2' }),
      aWorker('stuck', { status: 'paused' })
    ];
    server.routes['GET clusters/c1/workers'] = () => ({ body: { workers } });
    await page(aCluster(), 'workers');
    const rows = (await screen.findAllByRole('row')).slice(1);
    expect(rows.map(row => row.firstChild?.textContent)).toEqual([
      'silent',
      'stuck',
      'full',
      'well'
    ]);
    expect(rows[0].textContent).toContain('n21.0 GiB of 4.0 GiB31 min ago');
    expect(rows[1].textContent).toContain('0 s ago, paused');
  });

  it('are restarted and given back once the user is sure', async () => {
    const workers = [aWorker('w1', { per_job: 2 })];
    server.routes['GET clusters/c1/workers'] = () => ({ body: { workers } });
    server.routes['PATCH clusters/c1'] = () => ({ body: aCluster() });
    await page(aCluster(), 'workers');
    fireEvent.click(
      await screen.findByRole('button', { name: 'Give back w1' })
    );
    await screen.findByText(/The cluster keeps 0 workers\./);
    document.querySelector<HTMLElement>('.jp-Dialog .jp-mod-warn')?.click();
    await waitFor(() =>
      expect(server.asked.at(-2)).toMatchObject({
        route: 'PATCH clusters/c1',
        body: { drop: 'w1' }
      })
    );
  });

  it.each([
    [0, /Give it a fixed number first/],
    [2, /belongs to a group, holds the scheduler, or is ending/]
  ])('say why they cannot be given back (from %i)', async (minimum, reason) => {
    server.routes['GET clusters/c1/workers'] = () => ({
      body: { workers: [aWorker('w0', { can_be_dropped: false })] }
    });
    await page(aCluster({ target: { minimum, maximum: 2 } }), 'workers');
    fireEvent.click(
      await screen.findByRole('button', { name: 'Give back w0' })
    );
    screen.getByText(reason);
    expect(screen.queryByRole('dialog')).toBeNull();
  });

  it('of a cluster that has ended are not asked for', async () => {
    await page(aCluster({ phase: 'stopped', dashboard: null }), 'workers');
    screen.getByText('No worker is connected.');
    expect(server.countOf('GET clusters/c1/workers')).toBe(0);
  });
});

describe('the scripts of a cluster', () => {
  it('are those that ran, each with its submission and jobs', async () => {
    const job = {
      mark: 'gpc-c1-1',
      state: 'running',
      reason: '',
      nodes: [],
      exit_code: null,
      submitted: 1_700_000_001,
      started: null,
      ended: null,
      cause: ''
    };
    const jobs = [
      { ...job, task: 0, id: '17_0' },
      { ...job, task: 1, id: '17_1' }
    ];
    server.routes['GET clusters/c1/jobs'] = () => ({ body: { jobs } });
    ran(script(2), script(1));
    await page(aCluster(), 'script');
    const first = await screen.findByRole('region', {
      name: 'Job script of gpc-c1-1'
    });
    expect(first.textContent).toBe('#!/bin/sh\nexec worker 1\n');
    await screen.findByText(
      `gpc-c1-1, submitted at ${moment(1_700_000_001)}: 2 jobs (17_0, 17_1)`
    );
    screen.getByText(`gpc-c1-2, submitted at ${moment(1_700_000_002)}`);
    screen.getByText('sbatch gpc-c1-2.sh');
    expect(server.countOf('POST profiles/local/script')).toBe(0);
    expect(document.body.textContent).not.toContain('calculated');
  });

  it('are fetched again when the cluster has changed', async () => {
    ran(script(1));
    await page(aCluster(), 'script');
    await screen.findByText('sbatch gpc-c1-1.sh');
    ran(script(2), script(1));
    cleanup();
    await page(aCluster({ revision: 4 }), 'script');
    await screen.findByText('sbatch gpc-c1-2.sh');
  });

  it.each([
    ['stopped', 'The scripts of this cluster are no longer stored.'],
    ['pending', 'No job was submitted yet.']
  ] as const)(
    'of a %s cluster that has none say so, and what is calculated says that it is',
    async (phase, words) => {
      ran();
      await page(aCluster({ phase, dashboard: null }), 'script');
      await screen.findByText(words);
      await screen.findByRole('region', {
        name: 'Job script, calculated now from the profile'
      });
      screen.getByRole('region', {
        name: 'Submit command, calculated now from the profile'
      });
      expect(screen.queryByText('Job script')).toBeNull();
    }
  );

  it('of a cluster started elsewhere are not asked for', async () => {
    await page(aCluster({ backend: 'existing' }), 'script');
    screen.getByText('Scripts are not shown for clusters started elsewhere.');
    expect(server.countOf('GET clusters/c1/scripts')).toBe(0);
  });

  it('that the server cannot read are a failure, not an empty list', async () => {
    await page(aCluster(), 'script');
    await screen.findByRole('status');
    expect(document.body.textContent).not.toContain('No job was submitted');
  });
});

describe('the details of a cluster', () => {
  it('have its actions, and how long each job waited and ran', async () => {
    const submitted = 1_700_000_000;
    server.routes['GET clusters/c1/jobs'] = () => ({
      body: {
        jobs: [
          {
            mark: 'gpc-c1-1',
            task: 0,
            id: '17',
            state: 'node_fail',
            reason: '',
            nodes: ['n1'],
            exit_code: null,
            cause: '',
            submitted,
            started: submitted + 42,
            ended: submitted + 342
          }
        ]
      }
    });
    const cluster = aCluster();
    await page(cluster, 'jobs');
    const cells = (await screen.findAllByRole('cell')).map(
      cell => cell.textContent
    );
    expect(cells.slice(-3, -1)).toEqual(['42 s', '5 min']);
    fireEvent.click(screen.getByRole('button', { name: /^Dashboard/ }));
    expect(actions.openDashboard).toHaveBeenCalledWith(cluster);
  });

  it('show a log’s warnings alone', async () => {
    server.routes['GET clusters/c1/logs'] = () => ({
      body: { text: 'INFO - ready\nWARNING - slow\nKeyError: 7' }
    });
    await page(aCluster(), 'log');
    const log = await screen.findByText(/INFO - ready/);
    fireEvent.click(screen.getByLabelText('Warnings and errors only'));
    expect(log.textContent).toBe('WARNING - slow\nKeyError: 7\n');
    screen.getByText('2 of 3 lines');
  });

  it('tell its last loss first', async () => {
    await page(aCluster({ phase: 'degraded', loss: aLoss() }), 'facts');
    const text = document.body.textContent ?? '';
    expect(text.indexOf('demo01 failed at')).toBeGreaterThan(-1);
    expect(text.indexOf('demo01 failed at')).toBeLessThan(
      text.indexOf('Degraded')
    );
  });
});
