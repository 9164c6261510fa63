import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import { StateDB } from '@jupyterlab/statedb';
import { Signal } from '@lumino/signaling';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { AutoConnect } from '../autoConnect';
import { ClustersModel } from '../../model/model';
import type { Preferences } from '../../model/preferences';
import { aCluster, FakeServer, trans } from '../../__tests__/fakes';

let server: FakeServer;
let model: ClustersModel;
let wanted: boolean;
const ran: string[] = [];

function aKernel(): object {
  return {
    requestExecute: (content: { code: string }) => {
      if (content.code !== '') {
        ran.push(content.code);
      }
      return { done: Promise.resolve({ content: { status: 'ok' } }) };
    }
  };
}

/** As much of a notebook as a kernel's coming and going touches. */
function aPanel() {
  const sessionContext = {
    session: { kernel: aKernel() }
  } as {
    session: { kernel: object };
    kernelChanged: Signal<object, void>;
    statusChanged: Signal<object, string>;
  };
  sessionContext.kernelChanged = new Signal(sessionContext);
  sessionContext.statusChanged = new Signal(sessionContext);
  return {
    sessionContext,
    context: { path: 'work.ipynb' },
    title: { label: 'work.ipynb' }
  };
}

beforeEach(() => {
  server = new FakeServer();
  server.clusters = [aCluster()];
  server.routes['GET clusters/c1/client-code'] = () => ({
    body: { connect: 'connect("quiet-fox")', magic: '', dask: '' }
  });
  model = new ClustersModel({ api: server.api });
  wanted = true;
  ran.length = 0;
});

afterEach(() => model.dispose());

function follow(panel: ReturnType<typeof aPanel>): AutoConnect {
  const tracker = { forEach: vi.fn() } as unknown as INotebookTracker;
  const added = new Signal<INotebookTracker, NotebookPanel>(tracker);
  Object.assign(tracker, { widgetAdded: added });
  const connect = new AutoConnect({
    model,
    notebooks: tracker,
    preferences: { get: () => wanted } as unknown as Preferences,
    state: new StateDB(),
    trans
  });
  added.emit(panel as unknown as NotebookPanel);
  return connect;
}

function restart(panel: ReturnType<typeof aPanel>): void {
  panel.sessionContext.statusChanged.emit('restarting');
  panel.sessionContext.statusChanged.emit('starting');
  panel.sessionContext.statusChanged.emit('idle');
}

describe('a notebook that was connected', () => {
  it('gets its client again, once for each restart', async () => {
    const panel = aPanel();
    const connect = follow(panel);
    connect.remember(panel as unknown as NotebookPanel, 'c1');
    restart(panel);
    await vi.waitFor(() => expect(ran).toEqual(['connect("quiet-fox")']));
    restart(panel);
    await vi.waitFor(() => expect(ran).toHaveLength(2));
  });

  it('is left alone where nobody asked for it, or the cluster has ended', async () => {
    const panel = aPanel();
    const connect = follow(panel);
    connect.remember(panel as unknown as NotebookPanel, 'c1');
    wanted = false;
    restart(panel);
    await model.refresh();
    wanted = true;
    server.clusters = [aCluster({ phase: 'stopped', scheduler_address: '' })];
    await model.refresh();
    restart(panel);
    await model.refresh();
    expect(ran).toEqual([]);
  });
});

describe('a notebook that never was', () => {
  it('is left alone', async () => {
    const panel = aPanel();
    follow(panel);
    restart(panel);
    await model.refresh();
    expect(ran).toEqual([]);
  });
});
