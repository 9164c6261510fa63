import { StateDB } from '@jupyterlab/statedb';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { Absence, accountOf } from '../absence';
import { ClustersModel } from '../../model/model';
import type { IClusterEvent } from '../../model/tokens';
import { moment } from '../../model/words';
import { aCluster, FakeServer, trans } from '../../__tests__/fakes';

const HOUR = 3600;
const now = Date.now() / 1000;

function event(kind: string, message: string, ago: number): IClusterEvent {
  return { time: now - ago, kind, message, job: '' };
}

let server: FakeServer;
let model: ClustersModel;
let state: StateDB;

beforeEach(() => {
  server = new FakeServer();
  model = new ClustersModel({ api: server.api });
  state = new StateDB();
});

afterEach(() => model.dispose());

async function seen(ago: number): Promise<void> {
  await state.save('jupyter-gpucluster:seen', {
    c1: { revision: 3, time: now - ago }
  });
}

describe('a return', () => {
  beforeEach(() => {
    server.clusters = [aCluster({ revision: 7 })];
    server.routes['GET clusters/c1/events'] = () => ({
      body: {
        events: [
          event('phase', 'starting', 3 * HOUR),
          event('phase', 'running', HOUR),
          event('lost', 'w.0 ended (node failed)', HOUR / 2),
          event('worker', 'w.1 is ready', HOUR / 3)
        ]
      }
    });
  });

  it('tells what happened since the cluster was last seen', async () => {
    await seen(2 * HOUR);
    const absence = new Absence({ model, state, trans });
    await model.refresh();
    await vi.waitFor(() =>
      expect(absence.news('c1')).toBe(
        `started ${moment(now - HOUR)}, 1 worker replaced`
      )
    );
    absence.dismiss('c1');
    expect(absence.news('c1')).toBe('');
  });

  it('after a moment, or to what is as it was, tells nothing', async () => {
    await seen(60);
    const absence = new Absence({ model, state, trans });
    await model.refresh();
    await vi.waitFor(async () =>
      expect(await state.fetch('jupyter-gpucluster:seen')).toMatchObject({
        c1: { revision: 7 }
      })
    );
    expect(absence.news('c1')).toBe('');
    expect(server.countOf('GET clusters/c1/events')).toBe(0);
  });
});

describe('an account', () => {
  it('counts who was lost without a successor', () => {
    const events = [
      event('lost', '', 3),
      event('lost', '', 2),
      event('worker', '', 1)
    ];
    expect(accountOf(events, trans)).toBe('1 worker replaced, 1 worker lost');
  });

  it('names the end', () => {
    const ended = event('phase', 'failed: killed by signal 9', 5);
    expect(accountOf([ended], trans)).toBe(`failed ${moment(ended.time)}`);
  });
});
