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
  /** Those of a stopping cluster that have not ended yet. */
  ending?: number;
}

/** Workers that a cluster lost together although it needed them, and their replacements. */
export interface ILoss {
  /** Epoch seconds. */
  time: number;
  workers: number;
  /** What `workers` counts. */
  unit: string;
  nodes: string[];
  /** How their jobs ended: the state of a job. */
  state: string;
  /** Whether their jobs are still listed as running. */
  given_up: boolean;
  /** Whether the batch system put their jobs back into the queue. */
  requeued: boolean;
  /** Whether they were ready; only then results were lost with them. */
  connected: boolean;
  cause: string;
  /** Replacements that wait in the queue. */
  waiting: number;
  /** Replacements that run and are not ready yet. */
  starting: number;
  /** Replacements that are ready. */
  replaced: number;
}

/** Something that ends a cluster; `ends` is in epoch seconds, null while it does not tick. */
export interface IClock {
  name: string;
  seconds: number;
  ends: number | null;
  /** The job that it ends; empty or missing where it ends the cluster. */
  job?: string;
  /** Whether another job takes the place of that job; null or missing where nobody knows. */
  follows?: boolean | null;
}

/** What a worker's GPU did at the last look; null where the card does not tell. */
export interface IGpuReading {
  worker: string;
  host: string;
  index: number | null;
  name: string;
  /** In percent. */
  utilization: number | null;
  /** In bytes. */
  memory_used: number;
  memory_total: number;
  /** In watts. */
  power: number | null;
  /** In degrees Celsius. */
  temperature: number | null;
  /** What holds its clocks down that should not. */
  slowed: string[];
  ecc_errors: number | null;
  /** Numbers of the errors that the driver has reported. */
  xids?: number[];
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
  /** When the first of its waiting jobs may start, in epoch seconds; null where nobody tells. */
  expected_start: number | null;
  stale_since: number | null;
  directory: string;
  gpus: IGpuReading[];
  /** GPUs held times hours, so far. */
  gpu_hours: number;
  /** The most that it may come to; null where nothing ends it. */
  gpu_hours_estimate: number | null;
  /** That GPUs are held and idle; else empty. */
  gpu_words: string;
  /** The batch job, not its own, whose nodes it uses; empty where there is none. */
  allocation?: string;
  /** The last loss of workers; null or missing where there was none, or it is long over. */
  loss?: ILoss | null;
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
  /** The group of workers that it starts; empty or missing for the one that is scaled. */
  group?: string;
}

export type OptionValue = string | number | boolean;

/** One thing that a profile lets its user choose: JSON Schema of a value, and two words more. */
export interface IOption {
  kind:
    'string' | 'integer' | 'boolean' | 'enum' | 'duration' | 'memory' | 'path';
  type: 'string' | 'integer' | 'boolean';
  title: string;
  description: string;
  /** What may be given, in words. */
  allowed: string;
  /** As users write it. */
  default?: OptionValue;
  enum?: string[];
  minimum?: number;
  maximum?: number;
  pattern?: string;
  maxLength?: number;
}

/** JSON Schema of the options of a start. */
export interface IOptionsSchema {
  type: 'object';
  properties: Record<string, IOption>;
  required: string[];
  additionalProperties: false;
}

export interface IProfile {
  name: string;
  title: string;
  backend: string;
  summary: string;
  gpus_per_job: number;
  unit: string;
  /** Whether CPU workers stand for GPUs on a site that is not there. */
  simulated: boolean;
  /** Whether the traffic of its clusters is encrypted; null where that shows only later. */
  encrypted: boolean | null;
  default: boolean;
  matches_host: boolean;
  source: string;
  options: IOptionsSchema;
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
  /** Versions by package; one that is not installed is missing. */
  versions: Record<string, string>;
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
  /** Number of a running batch job of the user's, whose nodes are to be used. */
  allocation?: string;
  request_id: string;
}

/** What the text of a job depends on. */
export type IScriptRequest = TargetRequest & {
  options: Record<string, OptionValue>;
  kernel?: string;
  /** Path of a Python, in place of a kernel. */
  python?: string;
  /** Number of a running batch job of the user's, whose nodes are to be used. */
  allocation?: string;
};

/** The text of one job, and the command that would submit it. */
export interface IScript {
  text: string;
  command: string;
  /** GPUs times hours until the jobs' walltime is over; null where nothing ends them. */
  gpu_hours_estimate?: number | null;
  /** Whether the cluster would outlive Jupyter. */
  survives?: boolean;
  /** Why it would or would not. */
  survival?: string;
}

/** The script of one submission of a cluster, as its jobs ran it. */
export interface IJobScript {
  /** The job name under which it was submitted. */
  mark: string;
  text: string;
  /** The submit command; may be empty. */
  command: string;
  /** When it was written, just before its submission; in epoch seconds. */
  written: number;
}

/** What a queueing system has free, where it can tell. */
export interface ICapacity {
  partitions: { name: string; free: number; total: number; unit: string }[];
  words: string;
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

/** Where a copy of a notebook goes, and what it is to measure. */
export interface ICopyRequest {
  directory: string;
  /** Id of a live cluster; the notebook starts one of its own where it is missing. */
  cluster?: string;
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
  /** End a cluster; with force also one whose head does not answer. */
  stop(id: string, force?: boolean): Promise<void>;
  forget(id: string): Promise<void>;
  /** The newest lines of all logs, or of one job's. */
  logs(id: string, job?: string): Promise<string>;
  events(id: string): Promise<IClusterEvent[]>;
  jobs(id: string): Promise<IJob[]>;
  script(profile: string, request: IScriptRequest): Promise<IScript>;
  /** The scripts that a cluster submitted, newest first. */
  scripts(id: string): Promise<IJobScript[]>;
  /** Null where the place cannot tell what is free. */
  capacity(profile: string): Promise<ICapacity | null>;
  clientCode(id: string): Promise<IClientCode>;
  notebooks(): Promise<IBundledNotebook[]>;
  /** Copy one of them; the result is the path of the copy. */
  copyNotebook(name: string, request: ICopyRequest): Promise<string>;
}

export const IClustersModel = new Token<IClustersModel>(
  'jupyter-gpucluster:IClustersModel',
  'The GPU clusters of this user: profiles, environments, clusters and what can be done with them.'
);
