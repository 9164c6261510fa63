import { screen, waitFor } from '@testing-library/dom';
import { Widget } from '@lumino/widgets';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { dashboardUrl, DashboardTab, plotsOf } from '../dashboard';
import { ClustersModel } from '../model';
import { aCluster, FakeServer, trans } from './fakes';

let server: FakeServer;
let model: ClustersModel;
let tab: DashboardTab;
const onShowTimeline = vi.fn();

beforeEach(() => {
  server = new FakeServer();
  model = new ClustersModel({ api: server.api });
});

afterEach(() => {
  tab.dispose();
  model.dispose();
});

function open(): void {
  tab = new DashboardTab({
    model,
    cluster: 'c1',
    plot: 'status',
    baseUrl: 'http://localhost/user/ada/',
    onShowCluster: vi.fn(),
    onShowTimeline,
    trans
  });
  Widget.attach(tab, document.body);
}

function frame(): string {
  return tab.node.querySelector('iframe')?.getAttribute('src') ?? '';
}

describe('a dashboard’s tab', () => {
  it('asks the server before it shows a frame', async () => {
    server.clusters = [aCluster()];
    open();
    expect(frame()).toBe('');
    await waitFor(() =>
      expect(frame()).toBe(
        'http://localhost/user/ada/gpucluster/dashboard/c1/status'
      )
    );
  });

  it('says that the page still loads, for each cluster anew', async () => {
    server.clusters = [aCluster(), aCluster({ id: 'c2' })];
    await model.refresh();
    open();
    const words = screen.getByText('Loading the dashboard…');
    const loaded = (): void => {
      tab.node.querySelector('iframe')?.dispatchEvent(new Event('load'));
    };
    expect(words.className).not.toContain('hidden');
    loaded();
    expect(words.className).toContain('hidden');
    tab.showCluster('c2');
    expect(words.className).not.toContain('hidden');
    loaded();
    expect(words.className).toContain('hidden');
    server.clusters = [];
    await model.refresh();
    await screen.findByText('This cluster is gone.');
    expect(words.className).toContain('hidden');
  });

  it('says that its cluster is gone', async () => {
    open();
    await screen.findByText('This cluster is gone.');
    expect(frame()).toBe('');
    expect(screen.getByText(/^Loading/).className).toContain('hidden');
  });

  it('says why the dashboard of somebody else is not shown', async () => {
    server.clusters = [aCluster({ backend: 'existing', dashboard: null })];
    await model.refresh();
    open();
    await screen.findByText('The dashboard of quiet-fox is not shown.');
    screen.getByText(/existing\.trust_dashboard/);
    expect(frame()).toBe('');
  });

  it('says why its cluster ended, and lets the frame go', async () => {
    server.clusters = [aCluster()];
    await model.refresh();
    open();
    expect(frame()).not.toBe('');
    server.clusters = [
      aCluster({ phase: 'failed', reason: 'Killed.', dashboard: null })
    ];
    await model.refresh();
    await screen.findByText('quiet-fox has ended.');
    screen.getByText('Killed.');
    screen.getByText('Show its timeline').click();
    expect(onShowTimeline).toHaveBeenCalledWith('c1');
    expect(frame()).toBe('about:blank');
  });

  it('turns to another cluster', async () => {
    server.clusters = [aCluster(), aCluster({ id: 'c2', name: 'second' })];
    await model.refresh();
    open();
    tab.showCluster('c2');
    expect(frame()).toContain('/dashboard/c2/status');
    expect(tab.title.label).toBe('second');
  });

  it('keeps its frame while the cluster changes otherwise', async () => {
    server.clusters = [aCluster()];
    await model.refresh();
    open();
    const before = tab.node.querySelector('iframe');
    const set = vi.spyOn(before as HTMLIFrameElement, 'setAttribute');
    server.clusters = [aCluster({ memory_used: 1 })];
    await model.refresh();
    expect(tab.node.querySelector('iframe')).toBe(before);
    expect(set).not.toHaveBeenCalledWith('src', expect.anything());
  });
});

describe('dashboard pages', () => {
  it('begin with the GPU ones where workers have GPUs', () => {
    open();
    const paths = (unit: string): string[] =>
      plotsOf(unit, trans).map(plot => plot.path);
    expect(paths('GPUs')[0]).toBe('individual-gpu-memory');
    expect(paths('workers').join()).not.toContain('gpu');
  });

  it('have addresses that an id cannot leave', () => {
    open();
    expect(dashboardUrl('/', '../x', 'status')).toBe(
      '/gpucluster/dashboard/..%2Fx/status'
    );
  });
});
