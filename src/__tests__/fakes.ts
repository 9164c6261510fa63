/** A server at the edge of the front end, and the things that it tells about. */

import { ServerConnection } from '@jupyterlab/services';
import { nullTranslator } from '@jupyterlab/translation';
import { vi } from 'vitest';

import { ClusterApi } from '../model/api';
import type {
  IClock,
  ICluster,
  IEnvironment,
  ILoss,
  IOption,
  IOptionsSchema,
  IProfile,
  IWorkerCounts
} from '../model/tokens';
import type { IListActions } from '../panel/clusters';

export const trans = nullTranslator.load('jupyter_gpucluster');

interface IAnswer {
  status?: number;
  body?: unknown;
}

type Route = (body: unknown) => IAnswer | Promise<IAnswer>;

/** Answers "METHOD path" below the API's address; a route that is missing answers 404. */
export class FakeServer {
  readonly asked: { route: string; body: unknown; tag?: string }[] = [];
  /** Whether the list is as a page with its tag has it. */
  unchanged = false;
  /** Whether the network lets requests through. */
  reachable = true;
  clusters: ICluster[] = [];
  profiles: IProfile[] = [aProfile()];
  environments: IEnvironment[] = [anEnvironment()];
  readonly routes: Record<string, Route> = {
    'GET clusters?ended=1': () => ({ body: { clusters: this.clusters } }),
    'GET dashboard/c1/health': () => ({ body: 'ok' }),
    'GET profiles': () => ({ body: { profiles: this.profiles, problems: [] } }),
    'GET environments': () => ({ body: { environments: this.environments } })
  };

  readonly api = new ClusterApi(
    ServerConnection.makeSettings({
      baseUrl: 'http://localhost:8888/user/a%40b/',
      fetch: request => this._answer(request as Request)
    })
  );

  countOf(route: string): number {
    return this.asked.filter(item => item.route === route).length;
  }

  private async _answer(request: Request): Promise<Response> {
    if (!this.reachable) {
      throw new TypeError('Failed to fetch');
    }
    const path = request.url
      .split('/user/a%40b/gpucluster/')[1]
      .replace(/^api\//, '');
    // Lab adds the time, so that nothing on the way answers from memory.
    const route = `${request.method} ${path.replace(/[?&]\d+$/, '')}`;
    const text = await request.text();
    const body: unknown = text === '' ? null : JSON.parse(text);
    const tag = request.headers.get('If-None-Match');
    this.asked.push({ route, body, ...(tag === null ? {} : { tag }) });
    if (tag !== null && this.unchanged) {
      return new Response(null, { status: 304 });
    }
    const answer = (await this.routes[route]?.(body)) ?? { status: 404 };
    return new Response(
      answer.body === undefined ? null : JSON.stringify(answer.body),
      { status: answer.status ?? 200, headers: { ETag: '"list"' } }
    );
  }
}

/** What a test says of a cluster; counts and clocks need not be complete. */
type ClusterChanges = Partial<Omit<ICluster, 'workers' | 'clocks'>> & {
  workers?: Partial<IWorkerCounts>;
  clocks?: Partial<IClock>[];
};

const NO_WORKERS = {
  asked: 0,
  pending: 0,
  starting: 0,
  ready: 0,
  lost: 0,
  ending: 0
};

export function aCluster(changes: ClusterChanges = {}): ICluster {
  const { workers = { asked: 2, ready: 2 }, clocks = [], ...others } = changes;
  return {
    id: 'c1',
    name: 'quiet-fox',
    profile: 'local',
    title: 'This machine',
    backend: 'local',
    phase: 'running',
    words: '2 of 2 workers ready',
    reason: '',
    phase_since: 1_700_000_000,
    created: 1_700_000_000,
    ended: null,
    revision: 3,
    written: 1_700_000_000,
    unit: 'workers',
    target: { minimum: 2, maximum: 2 },
    workers: { ...NO_WORKERS, ...workers },
    maximum_workers: 4,
    threads: 2,
    memory_used: 3 * 1024 ** 3,
    memory_limit: 8 * 1024 ** 3,
    clients: 0,
    encrypted: true,
    simulated: false,
    scheduler_address: 'tls://127.0.0.1:40000',
    python: '/usr/bin/python3',
    environment: 'Python 3',
    survives: true,
    survival: 'It goes on when Jupyter ends.',
    clocks: clocks.map(clock => ({
      name: 'maximum lifetime',
      seconds: 0,
      ends: null,
      job: '',
      follows: null,
      ...clock
    })),
    options: {},
    stale_since: null,
    unsaved_since: null,
    unaccounted: false,
    allocation: '',
    loss: null,
    tasks: 0,
    tasks_done: 0,
    busy: null,
    listed: null,
    directory: '/home/ada/clusters/c1',
    gpus: [],
    gpu_hours: 0,
    gpu_hours_estimate: null,
    expected_start: null,
    gpu_words: '',
    dashboard: '/user/a%40b/gpucluster/dashboard/c1/',
    ...others
  };
}

export function aLoss(changes: Partial<ILoss> = {}): ILoss {
  return {
    time: 1_700_000_100,
    workers: 4,
    unit: 'GPUs',
    nodes: ['demo01'],
    state: 'node_fail',
    given_up: false,
    requeued: false,
    connected: true,
    cause: 'Its node failed.',
    waiting: 4,
    starting: 0,
    replaced: 0,
    ...changes
  };
}

export function aProfile(changes: Partial<IProfile> = {}): IProfile {
  return {
    name: 'local',
    title: 'This machine',
    backend: 'local',
    summary: 'Workers on this machine',
    gpus_per_job: 0,
    unit: 'workers',
    simulated: false,
    encrypted: true,
    default: false,
    matches_host: false,
    source: 'built in',
    sources: [],
    shadowed: [],
    hosts: [],
    final: false,
    locked: [],
    options: optionsOf({}),
    limits: { workers: 4, clusters: null },
    default_workers: 2,
    words: 'CPU workers on this machine: there is no GPU.',
    unusable: '',
    ...changes
  };
}

export function anEnvironment(
  changes: Partial<IEnvironment> = {}
): IEnvironment {
  return {
    name: 'python3',
    title: 'Python 3',
    python: '/usr/bin/python3',
    suitable: true,
    problems: [],
    versions: { dask: '2026.8.0', distributed: '2026.8.0' },
    gpu_problems: [],
    ...changes
  };
}

export function anOption(changes: Partial<IOption> = {}): IOption {
  return {
    kind: 'string',
    type: 'string',
    title: 'Account',
    description: '',
    allowed: 'one line of text',
    ...changes
  };
}

export function optionsOf(
  properties: Record<string, IOption>,
  ...required: string[]
): IOptionsSchema {
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'object',
    properties,
    required,
    additionalProperties: false
  };
}

/** What the buttons of cards and list do, each noting what it was asked. */
export function someActions() {
  return {
    newCluster: vi.fn<IListActions['newCluster']>(),
    setUp: vi.fn<IListActions['setUp']>(),
    openNotebook: vi.fn<IListActions['openNotebook']>(),
    tryHere: vi.fn<IListActions['tryHere']>(),
    openDashboard: vi.fn<IListActions['openDashboard']>(),
    openDetails: vi.fn<IListActions['openDetails']>(),
    connect: vi.fn<IListActions['connect']>(),
    scale: vi.fn<IListActions['scale']>(() => Promise.resolve()),
    stop: vi.fn<IListActions['stop']>(),
    stopByForce: vi.fn<IListActions['stopByForce']>(),
    detach: vi.fn<IListActions['detach']>(),
    startAgain: vi.fn<IListActions['startAgain']>(),
    fix: vi.fn<IListActions['fix']>(),
    resubmit: vi.fn<IListActions['resubmit']>(),
    notify: vi.fn<IListActions['notify']>(() => Promise.resolve()),
    isAwaited: vi.fn<IListActions['isAwaited']>(() => false),
    events: vi.fn<IListActions['events']>(() => Promise.resolve([])),
    jobs: vi.fn<IListActions['jobs']>(() => Promise.resolve([])),
    forget: vi.fn<IListActions['forget']>(),
    showLog: vi.fn<IListActions['showLog']>(),
    showMore: vi.fn<IListActions['showMore']>(),
    drag: vi.fn<IListActions['drag']>(),
    touch: vi.fn<IListActions['touch']>(),
    isLossDismissed: vi.fn<IListActions['isLossDismissed']>(() => false),
    dismissLoss: vi.fn<IListActions['dismissLoss']>(),
    news: vi.fn<IListActions['news']>(() => ''),
    dismissNews: vi.fn<IListActions['dismissNews']>()
  } satisfies IListActions;
}
