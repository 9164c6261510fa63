/** The state that all views show: what the server said last, and how well it answers. */

import type { ServerConnection } from '@jupyterlab/services';
import type { ReadonlyJSONValue } from '@lumino/coreutils';
import { JSONExt } from '@lumino/coreutils';
import type { IDisposable } from '@lumino/disposable';
import { DisposableDelegate } from '@lumino/disposable';
import { Poll } from '@lumino/polling';
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';

import { ClusterApi } from './api';
import type {
  Connection,
  IBundledNotebook,
  IClientCode,
  ICluster,
  IClustersModel,
  IEnvironment,
  IProfile,
  IProfileProblem,
  IStartRequest,
  TargetRequest
} from './tokens';
import { isChanging } from './words';

const CALM_INTERVAL_MS = 5000;
const BUSY_INTERVAL_MS = 1000;
const LONGEST_INTERVAL_MS = 60000;

interface IClustersModelOptions {
  /** The routes; tests hand in one of their own. */
  api?: ClusterApi;
  serverSettings?: ServerConnection.ISettings;
}

/** Fetches while someone watches, tells only of changes, and never guesses. */
export class ClustersModel implements IClustersModel {
  constructor(options: IClustersModelOptions = {}) {
    this._api = options.api ?? new ClusterApi(options.serverSettings);
    this._poll = new Poll({
      auto: false,
      name: 'jupyter-gpucluster:clusters',
      factory: async () => {
        await this.refresh();
        if (this._failure !== null) {
          throw this._failure;
        }
      },
      frequency: frequency(CALM_INTERVAL_MS),
      standby: () => (this._watchers === 0 ? true : 'when-hidden')
    });
  }

  get connection(): Connection {
    if (this._failure === null) {
      return this._lastAnswer === null ? 'loading' : 'ok';
    }
    return this._lastAnswer === null ? 'unreachable' : 'stale';
  }

  get failure(): Error | null {
    return this._failure;
  }

  get lastAnswer(): number | null {
    return this._lastAnswer;
  }

  get clusters(): ReadonlyArray<ICluster> {
    return this._clusters;
  }

  get profilesFailure(): Error | null {
    return this._profilesFailure;
  }

  get profiles(): ReadonlyArray<IProfile> | null {
    return this._profiles;
  }

  get problems(): ReadonlyArray<IProfileProblem> {
    return this._problems;
  }

  get environments(): ReadonlyArray<IEnvironment> | null {
    return this._environments;
  }

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    if (this._isDisposed) {
      return;
    }
    this._isDisposed = true;
    this._poll.dispose();
    Signal.clearData(this);
  }

  cluster(id: string): ICluster | undefined {
    return this._clusters.find(cluster => cluster.id === id);
  }

  watch(): IDisposable {
    this._watchers += 1;
    if (this._watchers === 1) {
      if (this._profiles === null) {
        void this.loadProfiles();
      }
      void this._poll.refresh();
    }
    return new DisposableDelegate(() => {
      this._watchers -= 1;
    });
  }

  /** Fetch the clusters; a call during a fetch waits for one more fetch, which all such calls share. */
  refresh(): Promise<void> {
    if (this._fetching === null) {
      this._fetching = this._fetchClusters().finally(() => {
        this._fetching = null;
      });
      return this._fetching;
    }
    this._next ??= this._fetching.then(() => {
      this._next = null;
      return this.refresh();
    });
    return this._next;
  }

  async loadProfiles(): Promise<void> {
    try {
      const { profiles, problems } = await this._api.profiles();
      this._update(() => {
        this._profiles = profiles;
        this._problems = problems;
        this._profilesFailure = null;
      });
    } catch (error) {
      this._update(() => {
        this._profilesFailure = asError(error);
      });
    }
  }

  async loadEnvironments(): Promise<void> {
    const environments = await this._api.environments();
    this._update(() => {
      this._environments = environments;
    });
  }

  async start(request: IStartRequest): Promise<ICluster> {
    const cluster = await this._api.start(request);
    await this.refresh();
    return cluster;
  }

  async scale(id: string, target: TargetRequest): Promise<void> {
    await this._api.update(id, { target });
    await this.refresh();
  }

  async rename(id: string, name: string): Promise<void> {
    await this._api.update(id, { name });
    await this.refresh();
  }

  async stop(id: string): Promise<void> {
    await this._api.remove(id);
    await this.refresh();
  }

  async forget(id: string): Promise<void> {
    await this._api.remove(id);
    await this.refresh();
  }

  logs(id: string): Promise<string> {
    return this._api.logs(id);
  }

  clientCode(id: string): Promise<IClientCode> {
    return this._api.clientCode(id);
  }

  notebooks(): Promise<IBundledNotebook[]> {
    return this._api.notebooks();
  }

  copyNotebook(name: string, directory: string): Promise<string> {
    return this._api.copyNotebook(name, directory);
  }

  private async _fetchClusters(): Promise<void> {
    try {
      const clusters = await this._api.clusters();
      const recovered = this._failure !== null;
      this._update(() => {
        this._clusters = clusters;
        this._failure = null;
        this._lastAnswer = Date.now();
      });
      this._pace(recovered);
      if (recovered && this._profiles === null) {
        void this.loadProfiles();
      }
    } catch (error) {
      this._update(() => {
        this._failure = asError(error);
      });
    }
  }

  /** Look more often while phases change; at once where the poll would still wait for long. */
  private _pace(recovered: boolean): void {
    if (this._isDisposed) {
      return;
    }
    const busy = this._clusters.some(cluster => isChanging(cluster.phase));
    const interval = busy ? BUSY_INTERVAL_MS : CALM_INTERVAL_MS;
    const sooner = recovered || interval < this._poll.frequency.interval;
    this._poll.frequency = frequency(interval);
    if (sooner && this._watchers > 0) {
      void this._poll.schedule({ interval, phase: 'refreshed' });
    }
  }

  private _update(change: () => void): void {
    const before = this._shown();
    change();
    if (!this._isDisposed && !JSONExt.deepEqual(before, this._shown())) {
      this._changed.emit();
    }
  }

  /** What views draw; the moment of the last answer counts only once answers are missing. */
  private _shown(): ReadonlyJSONValue {
    return {
      connection: this.connection,
      failure: this._failure?.message ?? null,
      profilesFailure: this._profilesFailure?.message ?? null,
      clusters: this._clusters,
      profiles: this._profiles,
      problems: this._problems,
      environments: this._environments
    } as unknown as ReadonlyJSONValue;
  }

  private readonly _api: ClusterApi;
  private readonly _poll: Poll;
  private readonly _changed = new Signal<this, void>(this);
  private _clusters: ICluster[] = [];
  private _profiles: IProfile[] | null = null;
  private _problems: IProfileProblem[] = [];
  private _profilesFailure: Error | null = null;
  private _environments: IEnvironment[] | null = null;
  private _failure: Error | null = null;
  private _lastAnswer: number | null = null;
  private _fetching: Promise<void> | null = null;
  private _next: Promise<void> | null = null;
  private _watchers = 0;
  private _isDisposed = false;
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}

function frequency(interval: number): {
  interval: number;
  max: number;
  backoff: boolean;
} {
  return { interval, max: LONGEST_INTERVAL_MS, backoff: true };
}
