/** Tabs with the Dask dashboard of a cluster, or with our own words once there is none. */

import { MainAreaWidget } from '@jupyterlab/apputils';
import { URLExt } from '@jupyterlab/coreutils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { IFrame, ReactWidget, UseSignal } from '@jupyterlab/ui-components';
import { UUID } from '@lumino/coreutils';
import type { IDisposable } from '@lumino/disposable';
import type { Message } from '@lumino/messaging';
import type { IPoll } from '@lumino/polling';
import { Poll } from '@lumino/polling';
import { Signal } from '@lumino/signaling';
import { StackedLayout, Widget } from '@lumino/widgets';
import * as React from 'react';

import { isAway, watchPage } from './connection';
import { plotTitle, WHOLE_DASHBOARD } from './plots';
import { dashboardIcon } from '../ui/icons';
import type { ICluster, IClustersModel } from '../model/tokens';
import { DashboardPlaceholder } from '../ui/placeholder';
import { shownName } from '../model/words';

/** Between signs of life; one that is missing is noticed this much and the limit of a request later. */
const HEALTH_MS = 4000;
const RECONNECT_MS = 2000;
/** Between attempts to load a page that fails although the Jupyter server answers. */
const LONGEST_RECONNECT_MS = 30000;
const NOTHING = 'about:blank';

/** The address under which our server shows a page of a cluster's dashboard. */
export function dashboardUrl(
  baseUrl: string,
  cluster: string,
  plot: string
): string {
  return URLExt.join(
    baseUrl,
    'gpucluster',
    'dashboard',
    encodeURIComponent(cluster),
    ...plot.split('/').map(encodeURIComponent)
  );
}

interface IDashboardOptions {
  model: IClustersModel;
  /** The cluster's id. */
  cluster: string;
  plot: string;
  baseUrl: string;
  onShowCluster: (cluster: string) => void;
  onShowTimeline: (cluster: string) => void;
  trans: TranslationBundle;
}

/** A tab; it asks the server about its cluster before it shows a frame. */
export class DashboardTab extends MainAreaWidget<DashboardView> {
  constructor(options: IDashboardOptions) {
    super({ content: new DashboardView(options) });
    this._options = options;
    this.id = `jupyter-gpucluster-dashboard-${UUID.uuid4()}`;
    this.title.icon = dashboardIcon;
    this.title.closable = true;
    this.toolbar.hide();
    options.model.changed.connect(this._name, this);
    this._name();
  }

  /** Turn to another cluster. */
  showCluster(cluster: string): void {
    this.content.showCluster(cluster);
    this._name();
  }

  private _name(): void {
    const { model, plot, trans } = this._options;
    const cluster = model.cluster(this.cluster);
    const name = cluster ? shownName(cluster, trans) : this.cluster;
    this.title.label =
      plot === WHOLE_DASHBOARD
        ? name
        : trans.__('%1: %2', name, plotTitle(plot, trans));
    this.title.caption = trans.__('Dask dashboard of %1', name);
    this.content.name = this.title.label;
  }

  get cluster(): string {
    return this.content.cluster;
  }

  get plot(): string {
    return this.content.plot;
  }

  private readonly _options: IDashboardOptions;
}

class DashboardView extends Widget {
  constructor(options: IDashboardOptions) {
    super();
    this.addClass('jp-gpucluster-Dashboard');
    this._cluster = options.cluster;
    this.plot = options.plot;
    this._options = options;
    // The dashboard's own scripts and websockets need its origin. What it opens is in the sandbox, too.
    this._frame = new IFrame({
      sandbox: [
        'allow-same-origin',
        'allow-scripts',
        'allow-popups',
        'allow-downloads'
      ]
    });
    this._placeholder = ReactWidget.create(
      React.createElement(UseSignal<DashboardView, void>, {
        signal: this._shown,
        children: () =>
          React.createElement(DashboardPlaceholder, {
            ...options,
            cluster: this._cluster,
            lost: this._lost
          })
      })
    );
    this._health = new Poll({
      name: 'jupyter-gpucluster:dashboard',
      factory: () => this._ask(),
      frequency: frequency(HEALTH_MS),
      standby: () => document.hidden || (!this.isVisible && !this._lost)
    });
    this._waiting = new Widget();
    this._waiting.addClass('jp-gpucluster-Waiting');
    this._waiting.hide();
    this._waiting.node.setAttribute('role', 'status');
    this._waiting.node.textContent = options.trans.__('Loading the dashboard…');
    this._iframe.addEventListener('load', () => this._loaded());
    const layout = new StackedLayout();
    this.layout = layout;
    layout.addWidget(this._frame);
    layout.addWidget(this._waiting);
    layout.addWidget(this._placeholder);
    this._watch = options.model.watch();
    options.model.changed.connect(this._show, this);
    this._show();
    void options.model.refresh();
  }

  readonly plot: string;

  /** What screen readers call the frame. */
  set name(name: string) {
    this._iframe.title = this._options.trans.__('Dashboard of %1', name);
  }

  get cluster(): string {
    return this._cluster;
  }

  showCluster(cluster: string): void {
    this._cluster = cluster;
    this._page = '';
    this._show();
  }

  override dispose(): void {
    this._health.dispose();
    this._watch.dispose();
    super.dispose();
  }

  protected override onAfterShow(msg: Message): void {
    super.onAfterShow(msg);
    void this._health.refresh();
  }

  private _show(): void {
    const { model, baseUrl } = this._options;
    const cluster = model.cluster(this._cluster);
    const known = cluster !== undefined && hasDashboard(cluster);
    if (known && isAway(model.failure)) {
      this._lose(RECONNECT_MS);
    }
    const open = known && !this._lost;
    this._frame.setHidden(!open);
    this._placeholder.setHidden(open);
    // An empty frame lets go of its websockets.
    const wanted = open
      ? this._page || dashboardUrl(baseUrl, this._cluster, this.plot)
      : NOTHING;
    if (wanted !== this._frame.url && (open || this._frame.url !== '')) {
      this._frame.url = wanted;
      // The way to a cluster may be slow; what comes after a while is the page or an error.
      this._waiting.setHidden(!open);
    }
    this._shown.emit();
  }

  private _loaded(): void {
    this._waiting.hide();
    if (this._frame.url === NOTHING) {
      return;
    }
    watchPage(this._iframe, wasConnected => {
      // One that cannot be loaded is tried less and less often.
      this._pause = wasConnected
        ? RECONNECT_MS
        : Math.min(2 * this._pause, LONGEST_RECONNECT_MS);
      this._lose(this._pause);
      this._show();
    });
  }

  /** Empty the frame until the scheduler answers, which is asked after a pause. */
  private _lose(pause: number): void {
    if (this._lost) {
      return;
    }
    this._lost = true;
    this._page = this._placeInDashboard();
    this._health.frequency = frequency(RECONNECT_MS);
    void this._health.schedule({ interval: pause, phase: 'started' });
  }

  /** Ask the scheduler for a sign of life: a network that is cut closes no websocket. */
  private async _ask(): Promise<void> {
    const { model } = this._options;
    const asked = this._cluster;
    const known = model.cluster(asked);
    const isAlive =
      known === undefined ||
      !hasDashboard(known) ||
      (await model.api.health(asked).then(
        () => true,
        (failure: Error) => !isAway(failure)
      ));
    if (isAlive && this._lost) {
      await model.refresh();
    }
    if (this.isDisposed || asked !== this._cluster) {
      return;
    }
    if (!isAlive && !this._lost) {
      this._lose(RECONNECT_MS);
      this._show();
    } else if (isAlive && this._lost && !isAway(model.failure)) {
      this._lost = false;
      this._health.frequency = frequency(HEALTH_MS);
      this._show();
    }
  }

  /** The address of the page that the user has come to in the frame; '' for any outside the dashboard. */
  private _placeInDashboard(): string {
    const home = dashboardUrl(this._options.baseUrl, this._cluster, '');
    const href = this._iframe.contentDocument?.location.href ?? '';
    return href.startsWith(home) ? href : this._page;
  }

  private get _iframe(): HTMLIFrameElement {
    return this._frame.node.querySelector('iframe') as HTMLIFrameElement;
  }

  private readonly _options: IDashboardOptions;
  private readonly _frame: IFrame;
  private readonly _placeholder: ReactWidget;
  private readonly _waiting: Widget;
  private readonly _watch: IDisposable;
  private readonly _health: Poll;
  private readonly _shown = new Signal<this, void>(this);
  private _cluster: string;
  /** Where the user had come to when the connection was lost; '' for the plot's own page. */
  private _page = '';
  /** Whether the page in the frame has lost its connection. */
  private _lost = false;
  private _pause = RECONNECT_MS;
}

function frequency(interval: number): IPoll.Frequency {
  return { interval, backoff: false, max: LONGEST_RECONNECT_MS };
}

function hasDashboard(cluster: ICluster): boolean {
  return cluster.dashboard !== null;
}
