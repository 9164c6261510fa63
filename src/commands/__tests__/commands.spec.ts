import type { JupyterFrontEnd } from '@jupyterlab/application';
import { Dialog } from '@jupyterlab/apputils';
import { fireEvent, screen, waitFor } from '@testing-library/dom';
import { CommandRegistry } from '@lumino/commands';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { ActiveCluster } from '../../model/active';
import { addCommands } from '..';
import { CommandIDs } from '../../model/commandIds';
import { ClustersModel } from '../../model/model';
import { giveNotices } from '../../notify/notices';
import { Preferences } from '../../model/preferences';
import type { Tabs } from '../../dashboard/tabs';
import {
  aCluster,
  anEnvironment,
  FakeServer,
  trans
} from '../../__tests__/fakes';

let server: FakeServer;
let model: ClustersModel;
let commands: CommandRegistry;
const openDashboard = vi.fn();
const openDetails = vi.fn();
const reveal = vi.fn();

beforeEach(() => {
  server = new FakeServer();
  model = new ClustersModel({ api: server.api });
  commands = new CommandRegistry();
  addCommands({
    app: {
      commands,
      serviceManager: { kernelspecs: { specs: { default: 'python3' } } }
    } as unknown as JupyterFrontEnd,
    model,
    notebooks: null,
    showPanel: () => undefined,
    reveal,
    tabs: { openDashboard, openDetails, plots: [] } as unknown as Tabs,
    active: new ActiveCluster(),
    preferences: new Preferences(null),
    remember: () => undefined,
    directory: () => 'work',
    trans
  });
  giveNotices({ model, commands, trans });
});

afterEach(() => {
  Dialog.flush();
  model.dispose();
  vi.clearAllMocks();
});

async function know(...clusters: ReturnType<typeof aCluster>[]): Promise<void> {
  server.clusters = clusters;
  await model.refresh();
}

describe('every command', () => {
  it.each(Object.values(CommandIDs))(
    '%s has a label, a caption and described arguments',
    async id => {
      expect(commands.label(id)).not.toBe('');
      expect(commands.caption(id)).not.toBe('');
      const { args } = await commands.describedBy(id);
      expect(args).toMatchObject({ type: 'object' });
    }
  );
});

describe('commands for a cluster', () => {
  it('are enabled only where they apply', async () => {
    expect(commands.isEnabled(CommandIDs.stop)).toBe(false);
    await know(
      aCluster(),
      aCluster({ id: 'c2', phase: 'stopped', dashboard: null })
    );
    expect(commands.isEnabled(CommandIDs.stop)).toBe(true);
    expect(commands.isEnabled(CommandIDs.stop, { cluster: 'c2' })).toBe(false);
    expect(commands.isEnabled(CommandIDs.forget, { cluster: 'c2' })).toBe(true);
    expect(commands.isEnabled(CommandIDs.forget, { cluster: 'c1' })).toBe(
      false
    );
  });

  it('are told to whoever shows them when clusters change', async () => {
    const changed = vi.fn();
    commands.commandChanged.connect(changed);
    await know(aCluster());
    expect(changed).toHaveBeenCalled();
  });

  it('take the only cluster there is', async () => {
    await know(aCluster());
    await commands.execute(CommandIDs.openDashboard);
    expect(openDashboard).toHaveBeenCalledWith('c1', 'status');
  });

  it('ask which where there are several', async () => {
    await know(aCluster(), aCluster({ id: 'c2', name: 'second' }));
    const run = commands.execute(CommandIDs.openDashboard);
    await screen.findByText('Which cluster?');
    const select = document.querySelector('select');
    fireEvent.change(select as HTMLSelectElement, {
      target: { value: 'second' }
    });
    fireEvent.click(screen.getByText('Ok'));
    await run;
    expect(openDashboard).toHaveBeenCalledWith('c2', 'status');
  });

  it('look once more for a cluster that they do not know', async () => {
    server.clusters = [aCluster({ id: 'new' })];
    server.routes['PATCH clusters/new'] = () => ({ body: {} });
    await commands.execute(CommandIDs.scale, { cluster: 'new', workers: 3 });
    expect(server.asked.at(-2)).toEqual({
      route: 'PATCH clusters/new',
      body: { target: { workers: 3 } }
    });
  });

  it('open the tab of a cluster that is gone, which says so', async () => {
    await commands.execute(CommandIDs.openDashboard, {
      cluster: 'gone',
      plot: 'individual-workers'
    });
    expect(openDashboard).toHaveBeenCalledWith('gone', 'individual-workers');
  });
});

describe('stopping', () => {
  it('names what is lost, and does nothing without a yes', async () => {
    await know(aCluster({ clients: 2 }));
    const run = commands.execute(CommandIDs.stop);
    await screen.findByText(/2 workers end/);
    screen.getByText(/Now in use: 3.0 GiB. 2 clients are connected./);
    fireEvent.click(screen.getByText('Keep it'));
    await run;
    expect(server.countOf('DELETE clusters/c1')).toBe(0);
  });

  it('asks the server once it is confirmed', async () => {
    await know(aCluster());
    server.routes['DELETE clusters/c1'] = () => ({ status: 202, body: {} });
    const run = commands.execute(CommandIDs.stop);
    fireEvent.click(await screen.findByText('Stop cluster'));
    await run;
    expect(server.countOf('DELETE clusters/c1')).toBe(1);
  });
});

describe('stopping by force', () => {
  const now = Date.now() / 1000;

  it('is offered only once an end is overdue', async () => {
    const cluster = { phase: 'stopping', phase_since: now - 10 } as const;
    await know(
      aCluster(),
      aCluster({ id: 'c2', ...cluster }),
      aCluster({ id: 'c3', ...cluster, phase_since: now - 300 }),
      aCluster({ id: 'c4', phase: 'unreachable' })
    );
    const offered = ['c1', 'c2', 'c3', 'c4'].filter(id =>
      commands.isEnabled(CommandIDs.stopByForce, { cluster: id })
    );
    expect(offered).toEqual(['c3', 'c4']);
  });

  it('asks in plain words, and waiting goes on without a yes', async () => {
    await know(aCluster({ phase: 'stopping', phase_since: now - 300 }));
    const run = commands.execute(CommandIDs.stopByForce, { cluster: 'c1' });
    await screen.findByText(/has not confirmed.*results in memory are lost/);
    fireEvent.click(screen.getByText('Wait'));
    await run;
    expect(server.countOf('DELETE clusters/c1?force=1')).toBe(0);
  });

  it('is the way out where the head does not take a stop', async () => {
    await know(aCluster());
    server.routes['DELETE clusters/c1'] = () => ({
      status: 503,
      body: { message: 'The cluster’s head does not answer.' }
    });
    server.routes['DELETE clusters/c1?force=1'] = () => ({
      status: 202,
      body: {}
    });
    const run = commands.execute(CommandIDs.stop);
    fireEvent.click(await screen.findByText('Stop cluster'));
    await screen.findByText(
      /head does not answer. Its scheduler process is killed/
    );
    fireEvent.click(screen.getByText('Stop by force'));
    await run;
    expect(server.countOf('DELETE clusters/c1?force=1')).toBe(1);
  });
});

describe('a cluster that somebody else started', () => {
  it('can only be detached, which leaves it alone', async () => {
    await know(aCluster({ backend: 'existing' }));
    const { detach, rename, scale, stop } = CommandIDs;
    expect([scale, rename, stop].filter(id => commands.isEnabled(id))).toEqual(
      []
    );
    server.routes['DELETE clusters/c1'] = () => ({ status: 202, body: {} });
    const run = commands.execute(detach);
    await screen.findByText(/keeps running. It is only taken off this list/);
    fireEvent.click(screen.getByText('Detach'));
    await run;
    expect(server.countOf('DELETE clusters/c1')).toBe(1);
  });
});

describe('a failure', () => {
  it('is told with hint and evidence, and leaves the command done', async () => {
    await know(aCluster({ phase: 'stopped' }));
    server.routes['DELETE clusters/c1'] = () => ({
      status: 507,
      body: { message: 'Disk full.', hint: 'Free some.', detail: '/home' }
    });
    const run = commands.execute(CommandIDs.forget);
    await screen.findByText('Disk full.');
    screen.getByText('Free some.');
    screen.getByText('/home');
    fireEvent.click(screen.getByText('Close'));
    await run;
  });
});

describe('the benchmark notebook', () => {
  it('is copied to where the user works, and opened', async () => {
    const opened = vi.fn();
    commands.addCommand('docmanager:open', { execute: opened });
    server.routes['GET notebooks'] = () => ({
      body: { notebooks: [{ name: 'sum', title: 'Sum' }] }
    });
    server.routes['POST notebooks/sum'] = body => ({
      status: 201,
      body: { path: `${(body as { directory: string }).directory}/sum.ipynb` }
    });
    await commands.execute(CommandIDs.openNotebook);
    expect(opened).toHaveBeenCalledWith({ path: 'work/sum.ipynb' });
  });

  it('is chosen where there are several, and nothing is copied without a choice', async () => {
    server.routes['GET notebooks'] = () => ({
      body: {
        notebooks: [
          { name: 'gpus', title: 'GPU check-up' },
          { name: 'sum', title: 'Sum' }
        ]
      }
    });
    const run = commands.execute(CommandIDs.openNotebook);
    await screen.findByText('Which benchmark?');
    fireEvent.click(screen.getByText('Cancel'));
    await run;
    expect(server.asked.some(({ route }) => route.startsWith('POST'))).toBe(
      false
    );
  });

  it('measures a cluster, in its environment where that has this package', async () => {
    const opened = vi.fn();
    commands.addCommand('docmanager:open', { execute: opened });
    const copies: unknown[] = [];
    server.routes['POST notebooks/sum'] = body => {
      copies.push(body);
      return { status: 201, body: { path: 'sum.ipynb' } };
    };
    server.environments = [
      anEnvironment({ name: 'bare', python: '/bare/python' }),
      anEnvironment({
        name: 'full',
        python: '/full/python',
        versions: { jupyter_gpucluster: '0.1.0' }
      })
    ];
    await know(
      aCluster({ python: '/bare/python' }),
      aCluster({ id: 'c2', python: '/full/python' })
    );
    for (const cluster of ['c1', 'c2']) {
      await commands.execute(CommandIDs.benchmark, {
        cluster,
        notebook: 'sum'
      });
    }
    expect(copies).toEqual([
      { directory: 'work', cluster: 'c1' },
      { directory: 'work', cluster: 'c2' }
    ]);
    expect(opened.mock.calls).toEqual([
      [{ path: 'sum.ipynb' }],
      [{ path: 'sum.ipynb', kernel: { name: 'full' } }]
    ]);
  });
});

describe('a new cluster', () => {
  it('gets the focus once it is accepted', async () => {
    server.routes['POST clusters'] = () => ({ status: 201, body: aCluster() });
    const run = commands.execute(CommandIDs.create);
    await waitFor(() => screen.getByText('Environment'));
    fireEvent.click(screen.getByText('Start'));
    await run;
    expect(reveal).toHaveBeenCalledWith('c1');
  });
});
