/** The model that other extensions may use. */

import { Token } from '@lumino/coreutils';
import type { IDisposable } from '@lumino/disposable';
import type { ISignal } from '@lumino/signaling';

import type { ClusterApi } from './api';
import type {
  ICluster,
  IEnvironment,
  IInside,
  IProfile,
  IProfileProblem,
  IStartRequest,
  TargetRequest
} from './types';

export type * from './types';

/**
 * How the server answers: nothing yet, well, never so far, or no longer (what is shown is old).
 */
export type Connection = 'loading' | 'ok' | 'unreachable' | 'stale';

/** What is known about clusters, as the server told it last. */
export interface IClustersModel extends IDisposable {
  /** The routes, for what the model does not keep: logs, jobs, scripts and so on. */
  readonly api: ClusterApi;
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
  /** A line that the site shows to all users; may be empty. */
  readonly announcement: string;
  /** Titles of the batch systems on the server's host that have no profile. */
  readonly withoutProfile: ReadonlyArray<string>;
  /** The batch job that Jupyter runs in; null outside of jobs. */
  readonly inside: IInside | null;
  readonly environments: ReadonlyArray<IEnvironment> | null;
  readonly changed: ISignal<IClustersModel, void>;
  /** Tells each cluster that this page has started. */
  readonly started: ISignal<IClustersModel, ICluster>;

  cluster(id: string): ICluster | undefined;
  /** Keep the model fresh until the result is disposed; in a hidden page too where someone waits. */
  watch(awaiting?: boolean): IDisposable;
  refresh(): Promise<void>;
  loadProfiles(): Promise<void>;
  loadEnvironments(): Promise<void>;
  start(request: IStartRequest): Promise<ICluster>;
  scale(id: string, target: TargetRequest): Promise<void>;
  rename(id: string, name: string): Promise<void>;
  /** Give an idle cluster another hour. */
  keep(id: string): Promise<void>;
  /** Restart a worker, or end its job and keep the cluster smaller. */
  changeWorker(
    id: string,
    change: 'drop' | 'restart',
    worker: string
  ): Promise<void>;
  /** End a cluster; with force also one whose head does not answer. */
  stop(id: string, force?: boolean): Promise<void>;
  forget(id: string): Promise<void>;
}

export const IClustersModel = new Token<IClustersModel>(
  'jupyter-gpucluster:IClustersModel',
  'The GPU clusters of this user: profiles, environments, clusters and what can be done with them.'
);
