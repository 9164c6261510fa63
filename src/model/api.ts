/** The REST calls; nothing else in the front end speaks to the server extension. */

import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';
import type { TranslationBundle } from '@jupyterlab/translation';
import { nullTranslator } from '@jupyterlab/translation';

import type {
  IBundledNotebook,
  ICapacity,
  IClientCode,
  ICluster,
  IClusterEvent,
  ICopyRequest,
  IEnvironment,
  IInside,
  IJob,
  IJobScript,
  ILiveValues,
  IProfile,
  IProfileProblem,
  IProposedProfile,
  IScript,
  IScriptRequest,
  ISetUpRequest,
  IStartRequest,
  ISurveyedSystem,
  TargetRequest,
  IWorker
} from './types';

type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE';

/** The status of an answer without a body: the list with the ETag that was sent still holds. */
const UNCHANGED = 304;
/** A browser waits for minutes for an answer that a cut network has lost. */
const LIST_MS = 15_000;
/** A scheduler that takes in a large graph is busy for seconds. */
const HEALTH_MS = 10_000;

interface IRequestOptions {
  /** The part of our server that answers; `api` by default. */
  part?: 'api' | 'dashboard';
  /** Milliseconds after which no answer counts as none; a browser's own limit by default. */
  limit?: number;
  body?: object;
  query?: Record<string, string>;
  headers?: Record<string, string>;
}

interface IErrorBody {
  message?: unknown;
  hint?: unknown;
  detail?: unknown;
}

/** A request that failed, in words that may be shown. */
export class ApiError extends Error {
  /** The way out; empty where there is none. */
  readonly hint: string;
  /** The field's path for bad input, else evidence worth keeping. */
  readonly detail: string;
  /** The HTTP status; 0 where no answer came at all. */
  readonly status: number;

  constructor(
    message: string,
    options: { hint?: string; detail?: string; status: number }
  ) {
    super(message);
    this.name = 'ApiError';
    this.hint = options.hint ?? '';
    this.detail = options.detail ?? '';
    this.status = options.status;
  }
}

/** The server extension's routes as functions. */
export class ClusterApi {
  readonly serverSettings: ServerConnection.ISettings;

  constructor(
    serverSettings?: ServerConnection.ISettings,
    trans?: TranslationBundle
  ) {
    this.serverSettings = serverSettings ?? ServerConnection.makeSettings();
    this._trans = trans ?? nullTranslator.load('jupyter_gpucluster');
  }

  profiles(): Promise<{
    profiles: IProfile[];
    problems: IProfileProblem[];
    announcement?: string;
    without_profile?: string[];
    inside?: IInside | null;
  }> {
    return this._get(['profiles']);
  }

  async environments(): Promise<IEnvironment[]> {
    const { environments } = await this._get<{ environments: IEnvironment[] }>([
      'environments'
    ]);
    return environments;
  }

  /** All clusters, ended ones included; the same array if nothing that pages show has changed. */
  async clusters(): Promise<ICluster[]> {
    const { etag, clusters } = this._list;
    const { response, body } = await this._request('GET', ['clusters'], {
      query: { ended: '1' },
      limit: LIST_MS,
      ...(etag === null ? {} : { headers: { 'If-None-Match': etag } })
    });
    if (response.status === UNCHANGED) {
      return clusters;
    }
    this._list = {
      etag: response.headers.get('ETag'),
      clusters: (body as { clusters: ICluster[] }).clusters
    };
    return this._list.clusters;
  }

  start(request: IStartRequest): Promise<ICluster> {
    return this._send('POST', ['clusters'], request);
  }

  update(
    id: string,
    changes: {
      name?: string;
      target?: TargetRequest;
      /** A worker whose job ends. */
      drop?: string;
      /** A worker that starts anew. */
      restart?: string;
      /** Whether an idle cluster gets another hour. */
      keep?: boolean;
    }
  ): Promise<ICluster> {
    return this._send('PATCH', ['clusters', id], changes);
  }

  /** Ask a live cluster to stop; delete the record of an ended one. */
  async remove(id: string, force = false): Promise<void> {
    const query = force ? { query: { force: '1' } } : {};
    await this._request('DELETE', ['clusters', id], query);
  }

  /** The newest lines of all logs, or of one job's. */
  async logs(id: string, job = ''): Promise<string> {
    const query: Record<string, string> = job === '' ? {} : { job };
    const path = ['clusters', id, 'logs'];
    return (await this._get<{ text: string }>(path, query)).text;
  }

  async events(id: string): Promise<IClusterEvent[]> {
    const path = ['clusters', id, 'events'];
    return (await this._get<{ events: IClusterEvent[] }>(path)).events;
  }

  async jobs(id: string): Promise<IJob[]> {
    const path = ['clusters', id, 'jobs'];
    return (await this._get<{ jobs: IJob[] }>(path)).jobs;
  }

  /** The connected workers. */
  async workers(id: string): Promise<IWorker[]> {
    const path = ['clusters', id, 'workers'];
    return (await this._get<{ workers: IWorker[] }>(path)).workers;
  }

  /** The scripts that a cluster submitted, newest first. */
  async scripts(id: string): Promise<IJobScript[]> {
    const path = ['clusters', id, 'scripts'];
    return (await this._get<{ scripts: IJobScript[] }>(path)).scripts;
  }

  /** What a job of a cluster would run, without starting one. */
  script(profile: string, request: IScriptRequest): Promise<IScript> {
    return this._send('POST', ['profiles', profile, 'script'], request);
  }

  /** What is free where a profile's jobs would run; null if the site does not report it. */
  async capacity(profile: string): Promise<ICapacity | null> {
    try {
      return await this._get(['profiles', profile, 'capacity']);
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) {
        return null;
      }
      throw error;
    }
  }

  /** The queues with GPUs that the batch systems of the server's host report. */
  async queues(): Promise<ISurveyedSystem[]> {
    const { systems } = await this._get<{ systems: ISurveyedSystem[] }>([
      'setup'
    ]);
    return systems;
  }

  /** A profile for one queue; on request the batch system checks it, or it is saved. */
  setUp(request: ISetUpRequest): Promise<IProposedProfile> {
    return this._send('POST', ['setup'], request);
  }

  /** The names that the batch system reports for the options of a profile. */
  values(profile: string): Promise<ILiveValues> {
    return this._get(['profiles', profile, 'values']);
  }

  /** Ask the scheduler of a cluster for a sign of life; rejects if none comes soon. */
  async health(id: string): Promise<void> {
    await this._request('GET', [id, 'health'], {
      part: 'dashboard',
      limit: HEALTH_MS
    });
  }

  /** The paths of a scheduler's own list of plots, by its names. */
  async plots(id: string): Promise<Record<string, string>> {
    const path = [id, 'individual-plots.json'];
    return (await this._request('GET', path, { part: 'dashboard' }))
      .body as Record<string, string>;
  }

  clientCode(id: string): Promise<IClientCode> {
    return this._get(['clusters', id, 'client-code']);
  }

  async notebooks(): Promise<IBundledNotebook[]> {
    const { notebooks } = await this._get<{ notebooks: IBundledNotebook[] }>([
      'notebooks'
    ]);
    return notebooks;
  }

  /** Copy a bundled notebook and return the path of the copy. */
  async copyNotebook(name: string, request: ICopyRequest): Promise<string> {
    const path = ['notebooks', name];
    return (await this._send<{ path: string }>('POST', path, request)).path;
  }

  private async _get<T>(
    path: string[],
    query: Record<string, string> = {}
  ): Promise<T> {
    return (await this._request('GET', path, { query })).body as T;
  }

  private async _send<T>(
    method: Method,
    path: string[],
    body: object
  ): Promise<T> {
    return (await this._request(method, path, { body })).body as T;
  }

  private async _request(
    method: Method,
    path: string[],
    options: IRequestOptions
  ): Promise<{ response: Response; body: unknown }> {
    const url =
      URLExt.join(
        this.serverSettings.baseUrl,
        'gpucluster',
        options.part ?? 'api',
        ...path.map(encodeURIComponent)
      ) + URLExt.objectToQueryString(options.query ?? {});
    const init: RequestInit = { method };
    if (options.headers !== undefined) {
      const { headers } = this.serverSettings.init;
      init.headers = { ...(headers as object), ...options.headers };
    }
    if (options.body !== undefined) {
      init.body = JSON.stringify(options.body);
    }
    if (options.limit !== undefined) {
      init.signal = AbortSignal.timeout(options.limit);
    }
    let response: Response;
    let text: string;
    try {
      response = await ServerConnection.makeRequest(
        url,
        init,
        this.serverSettings
      );
      text = await response.text();
    } catch (error) {
      throw new ApiError(
        this._trans.__('The Jupyter server does not answer.'),
        {
          hint: this._trans.__(
            'Check the connection and whether the server is still running.'
          ),
          detail: asError(error).message,
          status: 0
        }
      );
    }
    if (!response.ok && response.status !== UNCHANGED) {
      throw errorOf(response, text, this._trans);
    }
    return { response, body: parse(text) };
  }

  private readonly _trans: TranslationBundle;
  private _list: { etag: string | null; clusters: ICluster[] } = {
    etag: null,
    clusters: []
  };
}

export function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}

function parse(text: string): unknown {
  if (text === '') {
    return null;
  }
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function errorOf(
  response: Response,
  text: string,
  trans: TranslationBundle
): ApiError {
  const body = (parse(text) ?? {}) as IErrorBody;
  const status = response.status;
  if (typeof body.message === 'string' && body.message !== '') {
    return new ApiError(body.message, {
      hint: typeof body.hint === 'string' ? body.hint : '',
      detail: typeof body.detail === 'string' ? body.detail : '',
      status
    });
  }
  return new ApiError(
    trans.__(
      'The server answered %1.',
      `${status} ${response.statusText}`.trim()
    ),
    { status }
  );
}
