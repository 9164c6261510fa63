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
  IJob,
  IJobScript,
  IProfile,
  IProfileProblem,
  IScript,
  IScriptRequest,
  IStartRequest,
  TargetRequest
} from './tokens';

type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE';

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

  profiles(): Promise<{ profiles: IProfile[]; problems: IProfileProblem[] }> {
    return this._request('GET', ['profiles']);
  }

  async environments(): Promise<IEnvironment[]> {
    const answer = await this._request<{ environments: IEnvironment[] }>(
      'GET',
      ['environments']
    );
    return answer.environments;
  }

  /** All clusters, ended ones included. */
  async clusters(): Promise<ICluster[]> {
    const answer = await this._request<{ clusters: ICluster[] }>(
      'GET',
      ['clusters'],
      { query: { ended: '1' } }
    );
    return answer.clusters;
  }

  start(request: IStartRequest): Promise<ICluster> {
    return this._request('POST', ['clusters'], { body: request });
  }

  update(
    id: string,
    changes: { name?: string; target?: TargetRequest }
  ): Promise<ICluster> {
    return this._request('PATCH', ['clusters', id], { body: changes });
  }

  /** Ask a live cluster to stop; delete the record of an ended one. */
  async remove(id: string, force = false): Promise<void> {
    await this._request(
      'DELETE',
      ['clusters', id],
      force ? { query: { force: '1' } } : {}
    );
  }

  async logs(id: string, job: string): Promise<string> {
    const answer = await this._request<{ text: string }>(
      'GET',
      ['clusters', id, 'logs'],
      job === '' ? {} : { query: { job } }
    );
    return answer.text;
  }

  async events(id: string): Promise<IClusterEvent[]> {
    const answer = await this._request<{ events: IClusterEvent[] }>('GET', [
      'clusters',
      id,
      'events'
    ]);
    return answer.events;
  }

  async jobs(id: string): Promise<IJob[]> {
    const answer = await this._request<{ jobs: IJob[] }>('GET', [
      'clusters',
      id,
      'jobs'
    ]);
    return answer.jobs;
  }

  /** The scripts that a cluster submitted, newest first. */
  async scripts(id: string): Promise<IJobScript[]> {
    const answer = await this._request<{ scripts: IJobScript[] }>('GET', [
      'clusters',
      id,
      'scripts'
    ]);
    return answer.scripts;
  }

  /** What a job of a cluster would run, without starting one. */
  script(profile: string, request: IScriptRequest): Promise<IScript> {
    return this._request('POST', ['profiles', profile, 'script'], {
      body: request
    });
  }

  /** What is free where a profile's jobs would run; null where nobody can tell. */
  async capacity(profile: string): Promise<ICapacity | null> {
    try {
      return await this._request('GET', ['profiles', profile, 'capacity']);
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) {
        return null;
      }
      throw error;
    }
  }

  clientCode(id: string): Promise<IClientCode> {
    return this._request('GET', ['clusters', id, 'client-code']);
  }

  async notebooks(): Promise<IBundledNotebook[]> {
    const answer = await this._request<{ notebooks: IBundledNotebook[] }>(
      'GET',
      ['notebooks']
    );
    return answer.notebooks;
  }

  /** Copy a bundled notebook and return the path of the copy. */
  async copyNotebook(name: string, request: ICopyRequest): Promise<string> {
    const answer = await this._request<{ path: string }>(
      'POST',
      ['notebooks', name],
      { body: request }
    );
    return answer.path;
  }

  private async _request<T>(
    method: Method,
    path: string[],
    options: { body?: unknown; query?: Record<string, string> } = {}
  ): Promise<T> {
    const url =
      URLExt.join(
        this.serverSettings.baseUrl,
        'gpucluster',
        'api',
        ...path.map(encodeURIComponent)
      ) + URLExt.objectToQueryString(options.query ?? {});
    const init: RequestInit = { method };
    if (options.body !== undefined) {
      init.body = JSON.stringify(options.body);
    }
    let response: Response;
    try {
      response = await ServerConnection.makeRequest(
        url,
        init,
        this.serverSettings
      );
    } catch (error) {
      throw new ApiError(
        this._trans.__('The Jupyter server does not answer.'),
        {
          hint: this._trans.__(
            'Check the connection and whether the server is still running.'
          ),
          detail: error instanceof Error ? error.message : String(error),
          status: 0
        }
      );
    }
    const text = await response.text();
    if (!response.ok) {
      throw errorOf(response, text, this._trans);
    }
    return parse(text) as T;
  }

  private readonly _trans: TranslationBundle;
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
