import { Dialog } from '@jupyterlab/apputils';
import { fireEvent, screen, waitFor } from '@testing-library/dom';
import { Widget } from '@lumino/widgets';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { dashboardUrl, DashboardTab } from '../dashboard';
import { allPlots, plotsOf } from '../plots';
import { ActiveCluster } from '../../model/active';
import { Preferences } from '../../model/preferences';
import { Tabs } from '../tabs';
import { ClustersModel } from '../../model/model';
import { aCluster, FakeServer, trans } from '../../__tests__/fakes';

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

/** What a test knows of the page in the frame; jsdom loads none. */
class FakePage {
  readonly Bokeh: { documents: unknown[] } = { documents: [] };
  WebSocket = class {};
  status = 200;
  path = '/user/ada/gpucluster/dashboard/c1/status';
  readonly performance = {
    getEntriesByType: () => [{ responseStatus: this.status }]
  };
  readonly setTimeout = (late: () => void): void => {
    this.late = late;
  };
  /** What the page does when it had its time. */
  late = (): void => undefined;

  /** Be loaded into the frame; an unreadable page is one of the browser's own. */
  load(readable = true, script = 'static/js/bokeh.min.js'): void {
    const iframe = tab.node.querySelector('iframe') as HTMLIFrameElement;
    const document = new DOMParser().parseFromString(
      `<script src="${script}"></script>`,
      'text/html'
    );
    const location = { href: `http://localhost${this.path}` };
    Object.defineProperties(iframe, {
      contentWindow: { configurable: true, value: this },
      contentDocument: {
        configurable: true,
        value: readable
          ? { location, querySelector: document.querySelector.bind(document) }
          : null
      }
    });
    iframe.dispatchEvent(new Event('load'));
  }

  /** Open a websocket, as Bokeh does for its session. */
  connect(): void {
    new this.WebSocket();
    this.Bokeh.documents.push({});
  }
}

describe('the connection of a dashboard’s tab', () => {
  const STATUS = 'http://localhost/user/ada/gpucluster/dashboard/c1/status';
  const WORDS = 'The dashboard of quiet-fox is not connected.';
  let page: FakePage;

  beforeEach(async () => {
    vi.useFakeTimers();
    server.clusters = [aCluster()];
    await model.refresh();
    open();
    page = new FakePage();
    page.load();
    page.connect();
  });

  afterEach(() => vi.useRealTimers());

  async function expectLost(): Promise<void> {
    // React draws a moment later.
    await vi.advanceTimersByTimeAsync(1);
    expect(tab.node.textContent).toContain(WORDS);
    expect(frame()).toBe('about:blank');
  }

  it('comes back by itself after the server was away', async () => {
    server.reachable = false;
    await model.refresh();
    await expectLost();
    await vi.advanceTimersByTimeAsync(60_000);
    await expectLost();
    server.reachable = true;
    await vi.advanceTimersByTimeAsync(5000);
    expect(frame()).toBe(STATUS);
    expect(tab.node.textContent).not.toContain(WORDS);
    screen.getByText('Loading the dashboard…');
  });

  it.each([0, 424, 503])(
    'is lost with a sign of life that fails with %s, within 15 s, and comes back with the next',
    async status => {
      const alive = server.routes['GET dashboard/c1/health'];
      server.routes['GET dashboard/c1/health'] = () =>
        status === 0
          ? new Promise<never>((_, reject) => {
              setTimeout(() => reject(new TypeError('cut')), 9000);
            })
          : { status };
      await vi.advanceTimersByTimeAsync(15_000);
      await expectLost();
      server.routes['GET dashboard/c1/health'] = alive;
      await vi.advanceTimersByTimeAsync(15_000);
      expect(frame()).toBe(STATUS);
    }
  );

  it('is not asked for while its tab is hidden', async () => {
    await vi.advanceTimersByTimeAsync(5000);
    const before = server.countOf('GET dashboard/c1/health');
    expect(before).toBeGreaterThan(0);
    tab.hide();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(server.countOf('GET dashboard/c1/health')).toBe(before);
    tab.show();
    await vi.advanceTimersByTimeAsync(1);
    expect(server.countOf('GET dashboard/c1/health')).toBe(before + 1);
  });

  it.each([424, 502, 503, 504])(
    'is lost where a Hub or a proxy answers %s for a server',
    async status => {
      const list = server.routes['GET clusters?ended=1'];
      server.routes['GET clusters?ended=1'] = () => ({ status });
      await model.refresh();
      await expectLost();
      server.routes['GET clusters?ended=1'] = list;
      await vi.advanceTimersByTimeAsync(5000);
      expect(frame()).toBe(STATUS);
    }
  );

  it('stays while the server itself answers an error', async () => {
    server.routes['GET clusters?ended=1'] = () => ({ status: 500 });
    await model.refresh();
    expect(frame()).toBe(STATUS);
    expect(tab.node.textContent).not.toContain(WORDS);
  });

  it('is lost with the websocket alone, and the page the user had come to is back', async () => {
    page = new FakePage();
    page.path = '/user/ada/gpucluster/dashboard/c1/individual-profile';
    page.load();
    page.connect();
    expect(frame()).toBe(STATUS);
    page.connect();
    await expectLost();
    await vi.advanceTimersByTimeAsync(3000);
    expect(frame()).toBe(`http://localhost${page.path}`);
    // And still is after any other change, until the tab turns to another cluster.
    server.clusters = [aCluster({ memory_used: 1 }), aCluster({ id: 'c2' })];
    await model.refresh();
    expect(frame()).toBe(`http://localhost${page.path}`);
    tab.showCluster('c2');
    expect(frame()).toContain('/dashboard/c2/status');
  });

  it('is lost by a page without a session, but not by one that needs none', async () => {
    new FakePage().load(true, 'statics/js/links.js');
    page = new FakePage();
    page.load();
    new page.WebSocket();
    expect(frame()).toBe(STATUS);
    page.late();
    await expectLost();
    await vi.advanceTimersByTimeAsync(5000);
    expect(frame()).toBe(STATUS);
  });

  it('tries a page that cannot be loaded again, less and less often', async () => {
    for (const seconds of [4, 8, 16, 30, 30]) {
      new FakePage().load(false);
      await expectLost();
      await vi.advanceTimersByTimeAsync(seconds * 1000 - 100);
      await expectLost();
      await vi.advanceTimersByTimeAsync(200);
      expect(frame()).toBe(STATUS);
    }
    page = new FakePage();
    page.load();
    page.connect();
    page.connect();
    await expectLost();
    await vi.advanceTimersByTimeAsync(2100);
    expect(frame()).toBe(STATUS);
  });

  it('is lost by the word that the scheduler does not answer', async () => {
    page = new FakePage();
    page.status = 503;
    page.load();
    await expectLost();
  });

  it('is of no matter once the cluster has ended', async () => {
    page.connect();
    await expectLost();
    server.clusters = [
      aCluster({ phase: 'stopped', reason: 'By you.', dashboard: null })
    ];
    await vi.advanceTimersByTimeAsync(3000);
    expect(tab.node.textContent).toContain('quiet-fox has ended.');
    expect(tab.node.textContent).not.toContain(WORDS);
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
    expect(dashboardUrl('/', '../x', 'statics/individual-map.html')).toBe(
      '/gpucluster/dashboard/..%2Fx/statics/individual-map.html'
    );
  });

  it('have titles and frames that a user can tell apart', async () => {
    server.clusters = [aCluster()];
    await model.refresh();
    open();
    expect(tab.node.querySelector('iframe')?.title).toBe(
      'Dashboard of quiet-fox'
    );
    const listed = {
      'Individual Rmm Memory': '/individual-rmm-memory',
      'Individual Cluster Map': '/statics/individual-cluster-map.html'
    };
    expect(allPlots(listed, trans)).toEqual([
      { path: 'statics/individual-cluster-map.html', title: 'Cluster map' },
      { path: 'individual-rmm-memory', title: 'RMM memory' }
    ]);
  });
});

describe('plots beside a notebook', () => {
  const added: { widget: DashboardTab; place: object | undefined }[] = [];
  const activated: string[] = [];
  let notebook: { id: string; isVisible: boolean } | null;
  let tabs: Tabs;

  beforeEach(async () => {
    added.length = activated.length = 0;
    notebook = { id: 'notebook', isVisible: true };
    server.clusters = [aCluster()];
    await model.refresh();
    tabs = new Tabs({
      app: {
        serviceManager: { serverSettings: { baseUrl: '/' } }
      },
      labShell: {
        add: (widget: DashboardTab, _: string, place?: object) => {
          tab = widget;
          added.push({ widget, place });
        },
        activateById: (id: string) => activated.push(id),
        currentWidget: null
      },
      model,
      active: new ActiveCluster(),
      preferences: new Preferences(null),
      notebooks: {
        get currentWidget() {
          return notebook;
        }
      },
      reveal: vi.fn(),
      trans
    } as unknown as ConstructorParameters<typeof Tabs>[0]);
  });

  afterEach(() => {
    added.forEach(({ widget }) => widget.dispose());
    Dialog.flush();
  });

  it('never hide it: neither one of them nor a layout', () => {
    tabs.openDashboard('c1', 'individual-progress');
    const beside = { mode: 'split-right', ref: 'notebook' };
    expect(added.map(({ place }) => place)).toEqual([beside]);
    tabs.openLayout('c1');
    // The one that was open moves, too.
    const [progress, stream] = added.map(({ widget }) => widget);
    expect(added.slice(1, 3)).toEqual([
      { widget: stream, place: beside },
      { widget: progress, place: { mode: 'split-bottom', ref: stream.id } }
    ]);
    expect(activated.at(-1)).toBe('notebook');
  });

  it('take the place of any other document where there is no notebook', () => {
    notebook = null;
    tabs.openDashboard('c1', 'status');
    expect(added.map(({ place }) => place)).toEqual([undefined]);
  });

  it('are found in the scheduler’s own list', async () => {
    server.routes['GET dashboard/c1/individual-plots.json'] = () => ({
      body: {
        'Individual Gpu Memory': '/individual-gpu-memory',
        'Individual Rmm Memory': '/individual-rmm-memory'
      }
    });
    const closed = tabs.choosePlot('c1');
    await screen.findByText('2 plots');
    fireEvent.click(screen.getByLabelText('Pin RMM memory'));
    await waitFor(() =>
      expect(
        screen.getAllByText(/ memory$/).map(({ textContent }) => textContent)
      ).toEqual(['RMM memory', 'GPU memory'])
    );
    const search = screen.getByLabelText('Search plots');
    fireEvent.change(search, { target: { value: 'gpu' } });
    await screen.findByText('1 plot');
    fireEvent.keyDown(search, { key: 'Enter' });
    await closed;
    expect(added[0].widget.plot).toBe('individual-gpu-memory');
    expect(added[0].widget.title.label).toBe('quiet-fox: GPU memory');
  });
});
