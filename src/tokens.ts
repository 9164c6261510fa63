/** What the server tells about profiles, environments and clusters, and the model other extensions may use. */

import { Token } from '@lumino/coreutils';
import type { IDisposable } from '@lumino/disposable';
import type { ISignal } from '@lumino/signaling';

export type Phase =
  | 'pending'
  | 'starting'
  | 'running'
  | 'degraded'
  | 'stopping'
  | 'stopped'
  | 'failed'
  | 'unreachable';

/** A range of workers; fixed where both ends are equal. */
export interface ITarget {
  minimum: number;
  maximum: number;
}

/** Workers by how far they are. */
export interface IWorkerCounts {
  asked: number;
  pending: number;
  starting: number;
  ready: number;
  lost: number;
}

/** Something that ends a cluster; `ends` is in epoch seconds, null while it does not tick. */
export interface IClock {
  name: string;
  seconds: number;
  ends: number | null;
}

/** A cluster; times are epoch seconds, memory is in bytes with 0 for unknown. */
export interface ICluster {
  id: string;
  name: string;
  profile: string;
  title: string;
  backend: string;
  phase: Phase;
  words: string;
  reason: string;
  phase_since: number;
  created: number;
  ended: number | null;
  revision: number;
  unit: string;
  target: ITarget;
  workers: IWorkerCounts;
  maximum_workers: number | null;
  threads: number;
  memory_used: number;
  memory_limit: number;
  clients: number;
  encrypted: boolean;
  simulated: boolean;
  scheduler_address: string;
  python: string;
  environment: string;
  survives: boolean;
  survival: string;
  clocks: IClock[];
  /** The profile's options as they were given. */
  options: Record<string, OptionValue>;
  stale_since: number | null;
  directory: string;
  /** Address of the proxied dashboard, null while there is none. */
  dashboard: string | null;
}

/** One line of a cluster's timeline; `time` is in epoch seconds. */
export interface IClusterEvent {
  time: number;
  kind: string;
  message: string;
  job: string;
}

/** One job of a cluster; times are epoch seconds, 0 or null where they have not come. */
export interface IJob {
  mark: string;
  task: number;
  state: string;
  id: string;
  reason: string;
  nodes: string[];
  exit_code: number | null;
  submitted: number;
  started: number | null;
  ended: number | null;
  /** Why it ended, in a sentence. */
  cause: string;
}

export type OptionValue = string | number | boolean;

/** One thing that a profile lets its user choose, in the words of JSON Schema where it has them. */
export interface IOption {
  kind:
    'string' | 'integer' | 'boolean' | 'enum' | 'duration' | 'memory' | 'path';
  title: string;
  description: string;
  required: boolean;
  /** What may be given, in words. */
  allowed: string;
  default?: OptionValue;
  enum?: string[];
}

export interface IProfile {
  name: string;
  title: string;
  backend: string;
  summary: string;
  gpus_per_job: number;
  unit: string;
  default: boolean;
  matches_host: boolean;
  source: string;
  options: Record<string, IOption>;
  limits: { workers: number | null; clusters: number | null };
  default_workers: number;
  words: string;
}

/** What is wrong with a profile file, and where. */
export interface IProfileProblem {
  file: string;
  line: number;
  column: number;
  message: string;
}

export interface IEnvironment {
  name: string;
  title: string;
  python: string;
  suitable: boolean;
  problems: string[];
  /** What keeps it from running workers with GPUs; no obstacle to others. */
  gpu_problems: string[];
}

/** The amount that a request asks for. */
export type TargetRequest =
  { workers: number } | { minimum: number; maximum: number };

export interface IStartRequest {
  profile: string;
  name?: string;
  target: TargetRequest;
  options: Record<string, OptionValue>;
  kernel?: string;
  request_id: string;
}

/** What the text of a job depends on. */
export type IScriptRequest = TargetRequest & {
  options: Record<string, OptionValue>;
  kernel?: string;
};

/** The text of one job, and the command that would submit it. */
export interface IScript {
  text: string;
  command: string;
}

/** The forms in which a notebook can reach a cluster. */
export interface IClientCode {
  connect: string;
  magic: string;
  dask: string;
}

/** A notebook that ships with the extension. */
export interface IBundledNotebook {
  name: string;
  title: string;
}

/**
 * How the server answers: nothing yet, well, never so far, or no longer (what is shown is old).
 */
export type Connection = 'loading' | 'ok' | 'unreachable' | 'stale';

/** What is known about clusters, as the server told it last. */
export interface IClustersModel extends IDisposable {
  readonly connection: Connection;
  /** Why the server does not answer; null while it does. */
  readonly failure: Error | null;
  /** When the server answered last, in milliseconds since the epoch. */
  readonly lastAnswer: number | null;
  readonly clusters: ReadonlyArray<ICluster>;
  readonly profiles: ReadonlyArray<IProfile> | null;
  /** Why the profiles could not be read; null where they could. */
  readonly profilesFailure: Error | null;
  readonly problems: ReadonlyArray<IProfileProblem>;
  readonly environments: ReadonlyArray<IEnvironment> | null;
  readonly changed: ISignal<IClustersModel, void>;
  /** Tells each cluster that this page has started. */
  readonly started: ISignal<IClustersModel, ICluster>;

  cluster(id: string): ICluster | undefined;
  /** Keep the model fresh until the result is disposed; closely where someone waits for a change. */
  watch(closely?: boolean): IDisposable;
  refresh(): Promise<void>;
  loadProfiles(): Promise<void>;
  loadEnvironments(): Promise<void>;
  start(request: IStartRequest): Promise<ICluster>;
  scale(id: string, target: TargetRequest): Promise<void>;
  rename(id: string, name: string): Promise<void>;
  stop(id: string): Promise<void>;
  forget(id: string): Promise<void>;
  logs(id: string): Promise<string>;
  events(id: string): Promise<IClusterEvent[]>;
  jobs(id: string): Promise<IJob[]>;
  script(profile: string, request: IScriptRequest): Promise<IScript>;
  clientCode(id: string): Promise<IClientCode>;
  notebooks(): Promise<IBundledNotebook[]>;
  copyNotebook(name: string, directory: string): Promise<string>;
}

export const IClustersModel = new Token<IClustersModel>(
  'jupyter-gpucluster:IClustersModel',
  'The GPU clusters of this user: profiles, environments, clusters and what can be done with them.'
);
