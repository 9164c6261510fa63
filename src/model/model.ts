/** The state that all views show: what the server said last, and how well it answers. */

import type { ServerConnection } from '@jupyterlab/services';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { ReadonlyJSONValue } from '@lumino/coreutils';
import { JSONExt } from '@lumino/coreutils';
import type { IDisposable } from '@lumino/disposable';
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';

import { asError, ClusterApi } from './api';
import { Pacer } from './pacer';
import type {
  Connection,
  ICluster,
  IClustersModel,
  IEnvironment,
  IInside,
  IProfile,
  IProfileProblem,
  IStartRequest,
  TargetRequest
} from './tokens';
import { isEnded } from './words';

interface IClustersModelOptions {
  /** The routes; tests hand in one of their own. */
  api?: ClusterApi;
  serverSettings?: ServerConnection.ISettings;
  trans?: TranslationBundle;
}

/** Fetches while someone watches, tells only of changes, and never guesses. */
export class ClustersModel implements IClustersModel {
  constructor(options: IClustersModelOptions = {}) {
    this.api =
      options.api ?? new ClusterApi(options.serverSettings, options.trans);
    this._pacer = new Pacer(() => this.refresh(), {
      live: () => this._clusters.some(({ phase }) => !isEnded(phase)),
      failing: () => this._failure !== null
    });
  }

  readonly api: ClusterApi;

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

  get announcement(): string {
    return this._announcement;
  }

  get withoutProfile(): ReadonlyArray<string> {
    return this._withoutProfile;
  }

  get inside(): IInside | null {
    return this._inside;
  }

  get environments(): ReadonlyArray<IEnvironment> | null {
    return this._environments;
  }

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get started(): ISignal<this, ICluster> {
    return this._started;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    if (this._isDisposed) {
      return;
    }
    this._isDisposed = true;
    this._pacer.dispose();
    Signal.clearData(this);
  }

  cluster(id: string): ICluster | undefined {
    return this._clusters.find(cluster => cluster.id === id);
  }

  watch(awaiting = false): IDisposable {
    return this._pacer.watch(awaiting);
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
      const answer = await this.api.profiles();
      this._update(() => {
        this._profiles = answer.profiles;
        this._problems = answer.problems;
        this._announcement = answer.announcement ?? '';
        this._withoutProfile = answer.without_profile ?? [];
        this._inside = answer.inside ?? null;
        this._profilesFailure = null;
      });
    } catch (error) {
      this._update(() => {
        this._profilesFailure = asError(error);
      });
    }
  }

  async loadEnvironments(): Promise<void> {
    const environments = await this.api.environments();
    this._update(() => {
      this._environments = environments;
    });
  }

  async start(request: IStartRequest): Promise<ICluster> {
    const cluster = await this.api.start(request);
    await this.refresh();
    this._started.emit(cluster);
    return cluster;
  }

  async scale(id: string, target: TargetRequest): Promise<void> {
    await this.api.update(id, { target });
    await this.refresh();
  }

  async keep(id: string): Promise<void> {
    await this.api.update(id, { keep: true });
    await this.refresh();
  }

  async rename(id: string, name: string): Promise<void> {
    await this.api.update(id, { name });
    await this.refresh();
  }

  async changeWorker(
    id: string,
    change: 'drop' | 'restart',
    worker: string
  ): Promise<void> {
    await this.api.update(id, { [change]: worker });
    await this.refresh();
  }

  async stop(id: string, force = false): Promise<void> {
    await this.api.remove(id, force);
    await this.refresh();
  }

  async forget(id: string): Promise<void> {
    await this.api.remove(id);
    await this.refresh();
  }

  private async _fetchClusters(): Promise<void> {
    try {
      const clusters = await this.api.clusters();
      const recovered = this._failure !== null;
      this._update(() => {
        this._clusters = clusters;
        this._failure = null;
        this._lastAnswer = Date.now();
      });
      if (recovered && this._profilesFailure !== null) {
        void this.loadProfiles();
      }
    } catch (error) {
      this._update(() => {
        this._failure = asError(error);
      });
    }
    if (!this._isDisposed) {
      this._pacer.adjust();
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
      announcement: this._announcement,
      withoutProfile: this._withoutProfile,
      inside: this._inside,
      environments: this._environments
    } as unknown as ReadonlyJSONValue;
  }

  private readonly _pacer: Pacer;
  private readonly _changed = new Signal<this, void>(this);
  private readonly _started = new Signal<this, ICluster>(this);
  private _clusters: ICluster[] = [];
  private _profiles: IProfile[] | null = null;
  private _problems: IProfileProblem[] = [];
  private _announcement = '';
  private _withoutProfile: string[] = [];
  private _inside: IInside | null = null;
  private _profilesFailure: Error | null = null;
  private _environments: IEnvironment[] | null = null;
  private _failure: Error | null = null;
  private _lastAnswer: number | null = null;
  private _fetching: Promise<void> | null = null;
  private _next: Promise<void> | null = null;
  private _isDisposed = false;
}
