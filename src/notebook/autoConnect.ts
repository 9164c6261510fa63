/** Gives notebooks that were connected to a cluster their client again when the kernel starts anew. */

import type { ISessionContext } from '@jupyterlab/apputils';
import { Notification } from '@jupyterlab/apputils';
import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import type { Kernel } from '@jupyterlab/services';
import type { IStateDB } from '@jupyterlab/statedb';
import type { TranslationBundle } from '@jupyterlab/translation';

import { hasPackage } from './clientCode';
import type { Preferences } from '../model/preferences';
import type { IClustersModel } from '../model/tokens';
import { isConnectable } from '../model/words';

const STATE_KEY = 'jupyter-gpucluster:connected';
const NOTICE_MS = 5000;

interface IAutoConnectOptions {
  model: IClustersModel;
  notebooks: INotebookTracker;
  preferences: Preferences;
  /** Null where nothing is remembered from page to page. */
  state: IStateDB | null;
  trans: TranslationBundle;
}

/** Remembers which notebook uses which cluster; acts only where the user has asked for it. */
export class AutoConnect {
  constructor(private readonly _options: IAutoConnectOptions) {
    const { notebooks, state } = _options;
    this._ready = Promise.resolve(state?.fetch(STATE_KEY)).then(stored => {
      this._used = {
        ...((stored ?? {}) as Record<string, string>),
        ...this._used
      };
    });
    notebooks.widgetAdded.connect((_, panel) => this._follow(panel));
    notebooks.forEach(panel => this._follow(panel));
  }

  /** Note that a notebook uses a cluster. */
  remember(panel: NotebookPanel, cluster: string): void {
    this._used[panel.context.path] = cluster;
    void this._options.state?.save(STATE_KEY, this._used);
  }

  private _follow(panel: NotebookPanel): void {
    const { sessionContext } = panel;
    let known: Kernel.IKernelConnection | null = null;
    const meet = (): void => {
      const kernel = sessionContext.session?.kernel ?? null;
      if (kernel !== null && kernel !== known) {
        known = kernel;
        void this._connect(panel, kernel, sessionContext);
      }
    };
    sessionContext.kernelChanged.connect(meet);
    sessionContext.statusChanged.connect((_, status) => {
      if (status === 'restarting' || status === 'autorestarting') {
        known = null;
      } else if (status === 'idle' || status === 'starting') {
        meet();
      }
    });
  }

  private async _connect(
    panel: NotebookPanel,
    kernel: Kernel.IKernelConnection,
    context: ISessionContext
  ): Promise<void> {
    const { model, preferences, trans } = this._options;
    await this._ready;
    const id = this._used[panel.context.path];
    if (id === undefined || !preferences.get('autoConnect')) {
      return;
    }
    if (model.cluster(id) === undefined) {
      await model.refresh();
    }
    const cluster = model.cluster(id);
    if (cluster === undefined || !isConnectable(cluster)) {
      return;
    }
    const code = await model.api.clientCode(id);
    const own = (await hasPackage(kernel)) !== false;
    const done = await kernel.requestExecute({
      code: own ? code.connect : code.dask,
      silent: true,
      store_history: false,
      stop_on_error: false
    }).done;
    if (context.session?.kernel === kernel && done?.content.status === 'ok') {
      Notification.emit(
        trans.__(
          '%1 is connected to %2 again.',
          panel.title.label,
          cluster.name
        ),
        'success',
        { autoClose: NOTICE_MS }
      );
    }
  }

  private readonly _ready: Promise<void>;
  private _used: Record<string, string> = {};
}
