/** Answers put in the server's place, so that every state can be seen at will. */

import type { Page, Route } from '@playwright/test';

const NOW = Date.now() / 1000;

export function cluster(changes: Record<string, unknown> = {}): object {
  return {
    id: 'abc123',
    name: 'quiet-fox',
    profile: 'local',
    title: 'This machine',
    backend: 'local',
    phase: 'running',
    words: '2 of 2 workers ready',
    reason: '',
    phase_since: NOW - 200,
    created: NOW - 260,
    ended: null,
    revision: 1,
    unit: 'workers',
    target: { minimum: 2, maximum: 2 },
    workers: { asked: 2, pending: 0, starting: 0, ready: 2, lost: 0 },
    maximum_workers: 4,
    threads: 2,
    memory_used: 300e6,
    memory_limit: 8e9,
    clients: 1,
    encrypted: true,
    simulated: false,
    scheduler_address: 'tls://127.0.0.1:40123',
    python: '/usr/bin/python3',
    environment: 'Python 3 (ipykernel)',
    survives: true,
    survival: 'It goes on when Jupyter ends.',
    clocks: [],
    options: {},
    stale_since: null,
    listed: null,
    directory: '/home/ada/.local/share/jupyter/gpucluster/clusters/abc123',
    gpus: [],
    gpu_hours: 0,
    gpu_hours_estimate: null,
    expected_start: null,
    gpu_words: '',
    loss: null,
    tasks: 0,
    tasks_done: 0,
    busy: null,
    dashboard: '/gpucluster/dashboard/abc123/',
    ...changes
  };
}

export const everyPhase = [
  cluster({
    id: 'p',
    name: 'patient-owl',
    title: 'Example GPU partition',
    backend: 'slurm',
    phase: 'pending',
    words: '0 of 8 GPUs ready, 8 waiting',
    reason: 'The partition is full: jobs with a higher priority go first.',
    unit: 'GPUs',
    workers: { asked: 8, pending: 8, starting: 0, ready: 0, lost: 0 },
    listed: NOW - 8,
    memory_limit: 0,
    memory_used: 0,
    scheduler_address: '',
    dashboard: null
  }),
  cluster({
    id: 's',
    name: 'early-lark',
    phase: 'starting',
    words: '1 of 4 workers ready',
    workers: { asked: 4, pending: 1, starting: 2, ready: 1, lost: 0 }
  }),
  cluster({ id: 'r' }),
  cluster({
    id: 'd',
    name: 'limping-heron',
    phase: 'degraded',
    words: '3 of 4 workers ready',
    reason: 'One worker was killed and cannot be replaced any more.',
    workers: { asked: 4, pending: 0, starting: 0, ready: 3, lost: 1 },
    encrypted: false,
    simulated: true,
    survives: false,
    stale_since: NOW - 90
  }),
  cluster({ id: 'x', name: 'leaving-swift', phase: 'stopping', words: '' }),
  cluster({
    id: 'u',
    name: 'silent-wren',
    phase: 'unreachable',
    words: '',
    reason:
      'Its scheduler runs on login2 and shows no sign of life. To end the cluster: jupyter gpucluster stop --force silent-wren',
    dashboard: null
  }),
  cluster({
    id: 'f',
    name: 'broken-jay',
    phase: 'failed',
    ended: NOW - 30,
    reason:
      'Its scheduler is gone: it was killed, or the machine was restarted.',
    dashboard: null
  }),
  cluster({
    id: 'e',
    name: 'done-tern',
    phase: 'stopped',
    ended: NOW - 600,
    reason: 'Stopped by you.',
    dashboard: null
  })
];

/** What has happened to a cluster so far, in the words of its scheduler process. */
export const timeline = [
  { time: NOW - 260, kind: 'head', message: 'Scheduler started', job: '' },
  {
    time: NOW - 250,
    kind: 'submit',
    message: 'Requested 2 workers (job gpc-abc123-1)'
  },
  { time: NOW - 220, kind: 'worker', message: 'gpc-abc123-1.0 is ready' },
  { time: NOW - 200, kind: 'worker', message: 'gpc-abc123-1.1 is ready' },
  { time: NOW - 200, kind: 'phase', message: 'running' },
  {
    time: NOW - 60,
    kind: 'lost',
    message: 'gpc-abc123-1.0 ended (out of memory): the node killed it'
  },
  {
    time: NOW - 50,
    kind: 'submit',
    message: 'Requested 1 worker (job gpc-abc123-2)'
  }
];

export function job(changes: Record<string, unknown> = {}): object {
  return {
    mark: 'gpc-abc123-1',
    task: 0,
    state: 'running',
    id: '48211',
    reason: '',
    nodes: ['gpu07'],
    exit_code: null,
    submitted: NOW - 250,
    started: NOW - 230,
    ended: null,
    cause: '',
    ...changes
  };
}

/** Answers by "METHOD path"; what is not among them goes to the real server. */
export class Answers {
  private readonly _answers = new Map<
    string,
    (route: Route) => Promise<void>
  >();

  async install(page: Page): Promise<void> {
    // Also in the pages that this one opens.
    await page.context().route('**/gpucluster/api/**', async route => {
      const request = route.request();
      const path = new URL(request.url()).pathname.split('/api/')[1];
      const answer = this._answers.get(`${request.method()} ${path}`);
      await (answer === undefined ? route.continue() : answer(route));
    });
  }

  clusters(...clusters: object[]): void {
    this.set('GET clusters', { clusters });
  }

  set(route: string, body: object, status = 200): void {
    this._answers.set(route, answered =>
      answered.fulfill({ status, contentType: 'application/json', json: body })
    );
  }

  /** Let the network fail. */
  cut(route: string): void {
    this._answers.set(route, answered => answered.abort());
  }

  /** Don't answer; the network fails at last where the result is called. */
  hold(route: string): () => Promise<void> {
    const held: Route[] = [];
    this._answers.set(route, answered => {
      held.push(answered);
      return Promise.resolve();
    });
    return async () => {
      this.cut(route);
      await Promise.all(held.map(answered => answered.abort()));
    };
  }

  /** Let the real server answer everything again. */
  clear(): void {
    this._answers.clear();
  }
}
