import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { ClustersModel } from '../model';
import { aCluster, aProfile, FakeServer } from '../../__tests__/fakes';

const LIST = 'GET clusters?ended=1';

let server: FakeServer;
let model: ClustersModel;

beforeEach(() => {
  server = new FakeServer();
  model = new ClustersModel({ api: server.api });
});

afterEach(() => {
  model.dispose();
  vi.useRealTimers();
});

function countChanges(): () => number {
  let count = 0;
  model.changed.connect(() => {
    count += 1;
  });
  return () => count;
}

describe('the connection', () => {
  it('is loading before the first answer and ok after it', async () => {
    expect(model.connection).toBe('loading');
    await model.refresh();
    expect(model.connection).toBe('ok');
  });

  it('is unreachable when no answer ever came', async () => {
    server.reachable = false;
    await model.refresh();
    expect(model.connection).toBe('unreachable');
    expect(model.failure?.message).toBe('The Jupyter server does not answer.');
  });

  it('is stale once answers are missing, and keeps what was known', async () => {
    server.clusters = [aCluster()];
    await model.refresh();
    server.reachable = false;
    await model.refresh();
    expect(model.connection).toBe('stale');
    expect(model.clusters).toHaveLength(1);
    server.reachable = true;
    await model.refresh();
    expect(model.connection).toBe('ok');
    expect(model.failure).toBeNull();
  });
});

describe('refresh', () => {
  it('tells only of changes', async () => {
    server.clusters = [aCluster()];
    const changes = countChanges();
    await model.refresh();
    expect(changes()).toBe(1);
    await model.refresh();
    expect(changes()).toBe(1);
    server.clusters = [aCluster({ revision: 4 })];
    await model.refresh();
    expect(changes()).toBe(2);
  });

  it('keeps one request in flight, and one more for all who asked meanwhile', async () => {
    await Promise.all([model.refresh(), model.refresh(), model.refresh()]);
    expect(server.countOf(LIST)).toBe(2);
  });

  it('sees with the second request what happened after the first was sent', async () => {
    const first = model.refresh();
    const second = model.refresh();
    await first;
    server.clusters = [aCluster()];
    await second;
    expect(model.cluster('c1')?.name).toBe('quiet-fox');
  });
});

describe('the pace', () => {
  const SECOND = 1000;
  const MINUTE = 60 * SECOND;
  const live = [aCluster()];
  const ended = [aCluster({ phase: 'stopped' })];
  let hidden = false;

  beforeEach(() => {
    vi.useFakeTimers();
    hidden = false;
    vi.spyOn(document, 'hidden', 'get').mockImplementation(() => hidden);
    model.dispose();
    model = new ClustersModel({ api: server.api });
  });

  afterEach(() => vi.restoreAllMocks());

  /** How many requests come in a time. */
  async function requestsIn(time: number): Promise<number> {
    const before = server.countOf(LIST);
    await vi.advanceTimersByTimeAsync(time);
    return server.countOf(LIST) - before;
  }

  function show(seen: boolean): void {
    hidden = !seen;
    document.dispatchEvent(new Event('visibilitychange'));
  }

  it('is none while nobody watches', async () => {
    expect(await requestsIn(MINUTE)).toBe(0);
    const watch = model.watch();
    expect(await requestsIn(SECOND)).toBe(1);
    watch.dispose();
    expect(await requestsIn(5 * MINUTE)).toBe(0);
  });

  it.each([
    // clusters, minutes since the last touch, hidden, a minute's requests
    [live, 1, false, 30],
    [live, 3, false, 30],
    [live, 6, false, 4],
    [live, 57, false, 4],
    [live, 70, false, 1],
    [ended, 1, false, 4],
    [ended, 70, false, 1],
    [live, 1, true, 2],
    [live, 70, true, 2],
    [ended, 1, true, 0],
    [[], 1, true, 0]
  ])('of %# follows use and clusters', async (clusters, minutes, away, n) => {
    server.clusters = clusters;
    model.watch();
    await vi.advanceTimersByTimeAsync(SECOND);
    hidden = away;
    await vi.advanceTimersByTimeAsync(minutes * MINUTE);
    // The step that was scheduled before the page's state changed is over.
    await vi.advanceTimersByTimeAsync(MINUTE);
    expect(Math.abs((await requestsIn(MINUTE)) - n)).toBeLessThan(1);
  });

  it('keeps figures at most two seconds old on a page in use', async () => {
    server.clusters = live;
    model.watch();
    await vi.advanceTimersByTimeAsync(SECOND);
    expect(await requestsIn(4 * MINUTE)).toBe(120);
  });

  it('goes on in a hidden page while someone waits, also through an outage', async () => {
    const watch = model.watch(true);
    await vi.advanceTimersByTimeAsync(SECOND);
    show(false);
    server.reachable = false;
    expect(await requestsIn(2 * MINUTE)).toBe(0);
    server.reachable = true;
    server.clusters = live;
    await vi.advanceTimersByTimeAsync(31 * SECOND);
    expect(model.cluster('c1')?.phase).toBe('running');
    watch.dispose();
  });

  it.each(['pointerdown', 'keydown', 'wheel'])(
    'returns at once with a %s after a pause',
    async touch => {
      server.clusters = live;
      model.watch();
      await vi.advanceTimersByTimeAsync(62 * MINUTE);
      await vi.advanceTimersByTimeAsync(2 * SECOND);
      const before = server.countOf(LIST);
      document.dispatchEvent(new Event(touch));
      await vi.advanceTimersByTimeAsync(10);
      expect(server.countOf(LIST)).toBe(before + 1);
      expect(await requestsIn(MINUTE)).toBe(30);
    }
  );

  it('returns at once when the page is shown', async () => {
    server.clusters = ended;
    model.watch();
    await vi.advanceTimersByTimeAsync(SECOND);
    show(false);
    expect(await requestsIn(MINUTE)).toBe(0);
    show(true);
    expect(await requestsIn(10)).toBe(1);
  });

  it('rises at once when a command starts something', async () => {
    server.clusters = ended;
    model.watch();
    await vi.advanceTimersByTimeAsync(SECOND);
    server.clusters = live;
    const refreshed = model.refresh();
    await vi.advanceTimersByTimeAsync(0);
    await refreshed;
    expect(await requestsIn(10 * SECOND)).toBe(5);
  });

  it.each([
    [1, 10],
    [20, 15],
    [70, 60]
  ])(
    'finds a server again that was away, %d minutes after the last touch, within %d s',
    async (minutes, seconds) => {
      server.clusters = ended;
      model.watch();
      await vi.advanceTimersByTimeAsync(SECOND);
      await vi.advanceTimersByTimeAsync(minutes * MINUTE);
      server.reachable = false;
      await vi.advanceTimersByTimeAsync(2 * MINUTE);
      expect(model.connection).toBe('stale');
      server.reachable = true;
      await vi.advanceTimersByTimeAsync(seconds * SECOND);
      expect(model.connection).toBe('ok');
    }
  );

  it('finds a server again at once with a touch', async () => {
    model.watch();
    await vi.advanceTimersByTimeAsync(SECOND);
    server.reachable = false;
    await vi.advanceTimersByTimeAsync(70 * MINUTE + 2 * SECOND);
    server.reachable = true;
    document.dispatchEvent(new Event('keydown'));
    await vi.advanceTimersByTimeAsync(10);
    expect(model.connection).toBe('ok');
  });

  it('asks with the tag of the list that it has', async () => {
    server.clusters = live;
    await model.refresh();
    const clusters = model.clusters;
    server.unchanged = true;
    await model.refresh();
    expect(server.asked.at(-1)?.tag).toBe('"list"');
    expect(model.clusters).toBe(clusters);
    expect(model.connection).toBe('ok');
  });
});

describe('commands', () => {
  it('are followed by a look at what the server says', async () => {
    server.clusters = [aCluster()];
    await model.refresh();
    server.routes['DELETE clusters/c1'] = () => {
      server.clusters = [aCluster({ phase: 'stopping' })];
      return { status: 202, body: server.clusters[0] };
    };
    await model.stop('c1');
    expect(model.cluster('c1')?.phase).toBe('stopping');
  });

  it('change nothing by themselves when the server refuses', async () => {
    server.clusters = [aCluster()];
    await model.refresh();
    server.routes['PATCH clusters/c1'] = () => ({
      status: 409,
      body: { message: 'It is stopping.', hint: '', detail: '' }
    });
    await expect(model.scale('c1', { workers: 1 })).rejects.toThrow(
      'It is stopping.'
    );
    expect(model.cluster('c1')?.target.maximum).toBe(2);
  });
});

describe('profiles', () => {
  it('that cannot be read are a failure of their own', async () => {
    server.routes['GET profiles'] = () => ({ status: 500 });
    await model.loadProfiles();
    await model.refresh();
    expect(model.profilesFailure).not.toBeNull();
    expect(model.connection).toBe('ok');
  });

  it('are null until they are known', async () => {
    expect(model.profiles).toBeNull();
    await model.loadProfiles();
    expect(model.profiles).toEqual([aProfile()]);
  });
});
