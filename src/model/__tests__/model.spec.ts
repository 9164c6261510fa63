import type { Event } from '@jupyterlab/services';
import { Stream } from '@lumino/signaling';
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

describe('watching', () => {
  it('asks nothing while nobody watches', async () => {
    vi.useFakeTimers();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(server.asked).toEqual([]);
  });

  it('asks for profiles once, and for clusters every five seconds', async () => {
    vi.useFakeTimers();
    const watch = model.watch();
    await vi.advanceTimersByTimeAsync(10_500);
    expect(server.countOf('GET profiles')).toBe(1);
    expect(server.countOf(LIST)).toBe(3);
    watch.dispose();
    await vi.advanceTimersByTimeAsync(20_000);
    expect(server.countOf(LIST)).toBe(3);
  });

  it('asks every second while a phase is expected to change', async () => {
    vi.useFakeTimers();
    server.clusters = [aCluster({ phase: 'starting' })];
    model.watch();
    await vi.advanceTimersByTimeAsync(3_500);
    expect(server.countOf(LIST)).toBe(4);
  });

  it('at a glance asks twice a minute, and for no profiles', async () => {
    vi.useFakeTimers();
    model.watch(false);
    await vi.advanceTimersByTimeAsync(0);
    const close = model.watch();
    await vi.advanceTimersByTimeAsync(0);
    expect(server.countOf(LIST)).toBe(2);
    close.dispose();
    // The answer after the close watch has ended sets the longer time.
    await vi.advanceTimersByTimeAsync(65_500);
    expect(server.countOf(LIST)).toBe(5);
    expect(server.countOf('GET profiles')).toBe(1);
  });

  it('asks at once when the page is seen again', async () => {
    vi.useFakeTimers();
    model.watch();
    await vi.advanceTimersByTimeAsync(100);
    const hidden = vi.spyOn(document, 'hidden', 'get').mockReturnValue(true);
    document.dispatchEvent(new Event('visibilitychange'));
    await vi.advanceTimersByTimeAsync(100);
    expect(server.countOf(LIST)).toBe(1);
    hidden.mockRestore();
    document.dispatchEvent(new Event('visibilitychange'));
    await vi.advanceTimersByTimeAsync(100);
    expect(server.countOf(LIST)).toBe(2);
  });

  it('asks less and less often while the server does not answer', async () => {
    vi.useFakeTimers();
    server.routes[LIST] = () => ({ status: 500 });
    model.watch();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(server.countOf(LIST)).toBeLessThan(9);
  });

  it('returns to its pace at once when trying again succeeds', async () => {
    vi.useFakeTimers();
    server.reachable = false;
    model.watch();
    await vi.advanceTimersByTimeAsync(120_000);
    server.reachable = true;
    const retry = model.refresh();
    await vi.advanceTimersByTimeAsync(0);
    await retry;
    const before = server.countOf(LIST);
    await vi.advanceTimersByTimeAsync(5_500);
    expect(server.countOf(LIST)).toBe(before + 1);
  });
});

describe('hints', () => {
  const sender = {};
  let events: Stream<unknown, Event.Emission>;

  beforeEach(() => {
    vi.useFakeTimers();
    model.dispose();
    events = new Stream(sender);
    model = new ClustersModel({ api: server.api, events });
  });

  function hint(revision: number): void {
    events.emit({
      schema_id:
        'https://events.jupyter.org/jupyter_gpucluster/cluster_changed/v1',
      id: 'c1',
      revision
    });
  }

  it('are followed by a question, unless the revision is known', async () => {
    server.clusters = [aCluster({ revision: 3 })];
    await model.refresh();
    hint(3);
    await vi.advanceTimersByTimeAsync(0);
    expect(server.countOf(LIST)).toBe(1);
    server.clusters = [aCluster({ revision: 4 })];
    hint(4);
    await vi.advanceTimersByTimeAsync(0);
    expect(model.cluster('c1')?.revision).toBe(4);
  });

  it('of others are not ours', async () => {
    events.emit({
      schema_id:
        'https://events.jupyter.org/jupyter_server/contents_service/v1',
      id: 'c1',
      revision: 9
    });
    await vi.advanceTimersByTimeAsync(0);
    expect(server.asked).toEqual([]);
  });

  it('spare a waiting cluster the question each second', async () => {
    server.clusters = [aCluster({ phase: 'pending' })];
    model.watch();
    await vi.advanceTimersByTimeAsync(100);
    hint(4);
    await vi.advanceTimersByTimeAsync(100);
    const before = server.countOf(LIST);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(server.countOf(LIST) - before).toBe(3);
  });

  it('are not relied on once a change came without one', async () => {
    server.clusters = [aCluster({ phase: 'pending', revision: 4 })];
    model.watch();
    await vi.advanceTimersByTimeAsync(100);
    hint(5);
    server.clusters = [aCluster({ phase: 'pending', revision: 6 })];
    await vi.advanceTimersByTimeAsync(20_500);
    server.clusters = [aCluster({ phase: 'pending', revision: 8 })];
    await vi.advanceTimersByTimeAsync(20_500);
    const before = server.countOf(LIST);
    await vi.advanceTimersByTimeAsync(5_000);
    expect(server.countOf(LIST) - before).toBe(5);
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
