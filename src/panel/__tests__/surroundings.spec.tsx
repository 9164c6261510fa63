import { Notification } from '@jupyterlab/apputils';
import { CommandRegistry } from '@lumino/commands';
import { cleanup, fireEvent, render, screen } from '@testing-library/react';
import * as React from 'react';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { CommandIDs } from '../../model/commandIds';
import { ClustersModel } from '../../model/model';
import { warnOfEndings } from '../../notify/endings';
import { warnOfLosses } from '../../notify/losses';
import { giveNotices } from '../../notify/notices';
import { runningClusters } from '../running';
import type { ICluster } from '../../model/tokens';
import { StatusView } from '../statusView';
import { moment } from '../../model/words';
import { aCluster, aLoss, FakeServer, trans } from '../../__tests__/fakes';

let server: FakeServer;
let model: ClustersModel;
let commands: CommandRegistry;
const executed = vi.fn();

beforeEach(() => {
  server = new FakeServer();
  model = new ClustersModel({ api: server.api });
  commands = new CommandRegistry();
  for (const id of Object.values(CommandIDs)) {
    if (id === CommandIDs.notify) {
      continue;
    }
    commands.addCommand(id, {
      execute: args => executed(id, args.cluster) as unknown
    });
  }
});

afterEach(() => {
  cleanup();
  model.dispose();
  Notification.dismiss();
  vi.clearAllMocks();
});

async function know(...clusters: ICluster[]): Promise<void> {
  server.clusters = clusters;
  await model.refresh();
}

describe('a warning before the end', () => {
  it('names what is lost, once for each clock, and offers a replacement', async () => {
    warnOfEndings({ model, commands, trans });
    const soon = Date.now() / 1000 + 500;
    const clock = (ends: number) => [{ name: 'walltime', seconds: 1, ends }];
    await know(aCluster({ clocks: clock(soon + 900) }));
    expect(Notification.manager.notifications).toHaveLength(0);
    await know(aCluster({ clocks: clock(soon) }));
    await know(aCluster({ clocks: clock(soon), memory_used: 1 }));
    const [notice, ...others] = Notification.manager.notifications;
    expect(others).toEqual([]);
    expect(notice.message).toContain('(walltime)');
    expect(notice.message).toContain('2 workers end, and 3.0 GiB');
    expect(notice.message.length).toBeLessThan(120);
    notice.options.actions?.[0].callback(new MouseEvent('click'));
    expect(executed).toHaveBeenCalledWith(CommandIDs.startAgain, 'c1');
    await know(aCluster({ clocks: clock(soon + 3600) }));
    await know(aCluster({ clocks: clock(soon) }));
    expect(Notification.manager.notifications).toHaveLength(2);
  });

  it('offers to keep an idle cluster', async () => {
    warnOfEndings({ model, commands, trans });
    const ends = Date.now() / 1000 + 500;
    const idle = { name: 'idle time-out', seconds: 3600, ends, kind: 'idle' };
    await know(aCluster({ clocks: [idle] }));
    const [notice] = Notification.manager.notifications;
    expect(notice.message).toContain('3.0 GiB in their memory is lost');
    const [keep] = notice.options.actions ?? [];
    expect(keep.label).toBe('Keep for 1 h');
    keep.callback(new MouseEvent('click'));
    expect(executed).toHaveBeenCalledWith(CommandIDs.keep, 'c1');
    await know(aCluster({ clocks: [{ ...idle, ends: ends + 3600 }] }));
    await know(aCluster({ clocks: [idle] }));
    expect(Notification.manager.notifications).toHaveLength(2);
  });

  it('is not given for what is stopping anyway', async () => {
    warnOfEndings({ model, commands, trans });
    const ends = Date.now() / 1000 + 60;
    const clocks = [{ name: 'walltime', seconds: 1, ends }];
    await know(aCluster({ phase: 'stopping', clocks }));
    expect(Notification.manager.notifications).toHaveLength(0);
  });
});

describe('a notice of a loss', () => {
  const time = Date.now() / 1000 - 5;

  beforeEach(() => warnOfLosses({ model, commands, trans }));

  function messages(): string[] {
    return Notification.manager.notifications.map(item => item.message);
  }

  it('tells it once, until the next one, and leads to the cluster', async () => {
    await know(aCluster());
    expect(messages()).toEqual([]);
    await know(aCluster({ phase: 'degraded', loss: aLoss({ time }) }));
    const loss = aLoss({ time, waiting: 0, starting: 4 });
    await know(aCluster({ phase: 'degraded', loss }));
    expect(messages()).toEqual([
      `quiet-fox: demo01 failed at ${moment(time)}: 4 GPUs lost with what was ` +
        'in their memory; 4 replacements are waiting.'
    ]);
    const [notice] = Notification.manager.notifications;
    expect(notice.options.autoClose).toBe(false);
    notice.options.actions?.[0].callback(new MouseEvent('click'));
    expect(executed).toHaveBeenCalledWith(CommandIDs.showPanel, 'c1');
    await know(aCluster({ loss: aLoss({ time: time + 120 }) }));
    expect(messages()).toHaveLength(2);
  });

  it('grows with a loss that comes in parts', async () => {
    await know(aCluster({ loss: aLoss({ time, workers: 2 }) }));
    await know(aCluster({ loss: aLoss({ time: time + 3 }) }));
    expect(messages()).toHaveLength(1);
    expect(messages()[0]).toContain('4 GPUs lost');
  });

  it('is told of a cluster that failed with it', async () => {
    await know(aCluster({ phase: 'failed', loss: aLoss({ time }) }));
    expect(messages()).toHaveLength(1);
  });

  it('is not given for an old loss, and leaves out what Lab would cut off', async () => {
    await know(aCluster({ loss: aLoss({ time: time - 700 }) }));
    expect(messages()).toEqual([]);
    const name =
      'a-name-of-a-cluster-that-nobody-would-like-to-type-again-at-all';
    await know(aCluster({ name, loss: aLoss({ time }) }));
    expect(messages()[0]).toMatch(/in their memory\.$/);
    expect(messages()[0].length).toBeLessThan(140);
  });
});

describe('notices', () => {
  beforeEach(() => {
    giveNotices({ model, commands, trans });
    server.routes['POST clusters'] = () => ({
      status: 201,
      body: aCluster({ phase: 'starting' })
    });
  });

  async function start(): Promise<void> {
    server.clusters = [aCluster({ phase: 'starting' })];
    await model.start({
      profile: 'local',
      target: { workers: 2 },
      options: {},
      request_id: 'r'
    });
  }

  function messages(): string[] {
    return Notification.manager.notifications.map(item => item.message);
  }

  it('say once that a cluster is ready, and offer what comes next', async () => {
    await start();
    expect(messages()).toEqual([]);
    await know(aCluster());
    await know(aCluster({ revision: 9 }));
    expect(messages()).toEqual(['quiet-fox is ready with 2 of 2 workers.']);
    const [notice] = Notification.manager.notifications;
    const actions = notice.options.actions ?? [];
    expect(actions.map(action => action.label)).toEqual([
      'Connect notebook',
      'Dashboard'
    ]);
    actions[0].callback(new MouseEvent('click'));
    expect(executed).toHaveBeenCalledWith(CommandIDs.connect, 'c1');
  });

  it('say of a simulated cluster that it is one', async () => {
    await start();
    await know(aCluster({ simulated: true }));
    expect(messages()).toEqual([
      'quiet-fox (simulation) is ready with 2 of 2 workers.'
    ]);
  });

  it('call the user by the browser itself, also from a hidden page', async () => {
    const called: string[] = [];
    class Call {
      static permission = 'granted';
      static requestPermission = () => Promise.resolve('granted');
      constructor(title: string) {
        called.push(title);
      }
    }
    vi.stubGlobal('Notification', Call);
    vi.useFakeTimers();
    try {
      await know(aCluster({ phase: 'pending', workers: { asked: 2 } }));
      await commands.execute(CommandIDs.notify, { cluster: 'c1' });
      await vi.advanceTimersByTimeAsync(1000);
      vi.spyOn(document, 'hidden', 'get').mockReturnValue(true);
      document.dispatchEvent(new Event('visibilitychange'));
      server.clusters = [aCluster()];
      await vi.advanceTimersByTimeAsync(31_000);
      expect(called).toEqual(['quiet-fox is ready with 2 of 2 workers.']);
    } finally {
      vi.useRealTimers();
      vi.unstubAllGlobals();
      vi.restoreAllMocks();
    }
  });

  it('stay after a long wait', async () => {
    await start();
    await know(
      aCluster({ created: 1_700_000_000, phase_since: 1_700_009_000 })
    );
    const [notice] = Notification.manager.notifications;
    expect(notice.options.autoClose).toBe(false);
  });

  it('say why a cluster failed, and lead to its log', async () => {
    await start();
    await know(
      aCluster({ phase: 'failed', reason: 'No space left.\nslurmd: error' })
    );
    expect(messages()).toEqual(['quiet-fox failed. No space left.']);
  });

  it('are not given for what was started elsewhere, stopped or forgotten', async () => {
    await know(aCluster({ id: 'other', phase: 'starting' }));
    await know(aCluster({ id: 'other' }));
    await start();
    await know(aCluster({ phase: 'stopped' }));
    await start();
    await know();
    expect(messages()).toEqual([]);
  });

  it('wait on while the server is silent', async () => {
    await start();
    server.reachable = false;
    await model.refresh();
    server.reachable = true;
    await know(aCluster());
    expect(messages()).toHaveLength(1);
  });
});

describe('the panel of everything that runs', () => {
  it('lists what has not ended, and leads to card and question', async () => {
    await know(
      aCluster(),
      aCluster({ id: 'c2', name: 'old', phase: 'stopped' })
    );
    const [item, ...others] = runningClusters({
      model,
      commands,
      trans,
      started: Promise.resolve()
    }).running({ mode: 'tree' });
    expect(others).toEqual([]);
    expect(item.label()).toBe('quiet-fox');
    expect(item.detail?.()).toBe('Running, 2 workers ready');
    item.open?.();
    item.shutdown?.();
    expect(executed.mock.calls).toEqual([
      [CommandIDs.showPanel, 'c1'],
      [CommandIDs.stop, 'c1']
    ]);
  });

  it('says of a simulated cluster that it is one', async () => {
    await know(aCluster({ simulated: true }));
    const [item] = runningClusters({
      model,
      commands,
      trans,
      started: Promise.resolve()
    }).running({ mode: 'tree' });
    expect(item.label()).toBe('quiet-fox (simulation)');
  });

  it('names what stopping all would end, and stops each', async () => {
    await know(
      aCluster(),
      aCluster({ id: 'c2', name: 'second' }),
      aCluster({ id: 'c3', name: 'leaving', phase: 'stopping' })
    );
    server.routes['DELETE clusters/c1'] = () => ({ status: 202, body: {} });
    server.routes['DELETE clusters/c2'] = () => ({ status: 202, body: {} });
    const started = Promise.resolve();
    const manager = runningClusters({ model, commands, trans, started });
    // JupyterLab 4.2 keeps what it hears as it starts.
    expect(manager.shutdownAllConfirmationText).toContain(
      'This ends all clusters started here.'
    );
    await started;
    expect(manager.shutdownAllConfirmationText).toContain(
      'quiet-fox, second, leaving'
    );
    manager.shutdownAll();
    await vi.waitFor(() =>
      expect(
        server.asked
          .map(item => item.route)
          .filter(route => route.startsWith('DELETE'))
      ).toEqual(['DELETE clusters/c1', 'DELETE clusters/c2'])
    );
  });
});

describe('the status bar', () => {
  it('counts clusters and workers by their unit, and has a menu', async () => {
    await know(
      aCluster(),
      aCluster({
        id: 'c2',
        unit: 'GPUs',
        workers: { asked: 8, pending: 4, starting: 0, ready: 4, lost: 0 },
        gpu_hours: 2.6
      }),
      aCluster({ id: 'c3', phase: 'failed', gpu_hours: 9 })
    );
    const onClick = vi.fn();
    render(<StatusView model={model} trans={trans} onClick={onClick} />);
    fireEvent.click(
      screen.getByText('2 clusters, 2 of 2 workers, 4 of 8 GPUs, 2.6 GPU-hours')
    );
    expect(onClick).toHaveBeenCalled();
  });

  it('says how long it is until the first of them ends', async () => {
    const ends = Date.now() / 1000 + 4350;
    const clock = { name: 'walltime', seconds: 7200, ends, job: '' };
    await know(
      aCluster({ clocks: [{ ...clock, ends: ends + 9000 }] }),
      aCluster({ id: 'c2', clocks: [clock] }),
      aCluster({ id: 'c3', phase: 'stopped', clocks: [{ ...clock, ends: 9 }] })
    );
    render(<StatusView model={model} trans={trans} onClick={vi.fn()} />);
    screen.getByText('2 clusters, 4 of 4 workers, 1 h 12 min left');
  });

  it('says when its numbers are old', async () => {
    await know(aCluster());
    server.reachable = false;
    await model.refresh();
    render(<StatusView model={model} trans={trans} onClick={vi.fn()} />);
    screen.getByText('1 cluster, 2 of 2 workers (no answer)');
  });
});
