/** Tabs with the Dask dashboard of a cluster, or with our own words once there is none. */

import { MainAreaWidget } from '@jupyterlab/apputils';
import { URLExt } from '@jupyterlab/coreutils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { IFrame, ReactWidget, UseSignal } from '@jupyterlab/ui-components';
import { UUID } from '@lumino/coreutils';
import type { IDisposable } from '@lumino/disposable';
import { StackedLayout, Widget } from '@lumino/widgets';
import * as React from 'react';

import { dashboardIcon } from './icons';
import type { ICluster, IClustersModel } from './tokens';
import { DashboardPlaceholder } from './views/placeholder';
import { shownName } from './words';

/** A page of Dask's dashboard. */
interface IPlot {
  /** Its path below the dashboard's address. */
  path: string;
  title: string;
}

export const WHOLE_DASHBOARD = 'status';

/** The pages worth a tab of their own; those about GPUs first where workers have GPUs. */
export function plotsOf(unit: string, trans: TranslationBundle): IPlot[] {
  const gpu = [
    { path: 'individual-gpu-memory', title: trans.__('GPU memory') },
    { path: 'individual-gpu-utilization', title: trans.__('GPU utilization') }
  ];
  return [
    ...(unit === 'GPUs' ? gpu : []),
    { path: 'individual-task-stream', title: trans.__('Task stream') },
    { path: 'individual-progress', title: trans.__('Progress') },
    { path: 'individual-workers', title: trans.__('Workers') },
    { path: 'individual-workers-memory', title: trans.__('Memory by worker') }
  ];
}

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
    encodeURIComponent(plot)
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
    const page = plotsOf('GPUs', trans).find(item => item.path === plot);
    const cluster = model.cluster(this.cluster);
    const name = cluster ? shownName(cluster, trans) : this.cluster;
    this.title.label = page ? trans.__('%1: %2', name, page.title) : name;
    this.title.caption = trans.__('Dask dashboard of %1', name);
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
    // The dashboard's own scripts and websockets need its origin.
    this._frame = new IFrame({
      sandbox: ['allow-same-origin', 'allow-scripts']
    });
    this._placeholder = ReactWidget.create(
      React.createElement(UseSignal<IClustersModel, void>, {
        signal: options.model.changed,
        children: () =>
          React.createElement(DashboardPlaceholder, {
            ...options,
            cluster: this._cluster
          })
      })
    );
    this._waiting = new Widget();
    this._waiting.addClass('jp-gpucluster-Waiting');
    this._waiting.hide();
    this._waiting.node.setAttribute('role', 'status');
    this._waiting.node.textContent = options.trans.__('Loading the dashboard…');
    this._frame.node.querySelector('iframe')?.addEventListener('load', () => {
      this._waiting.hide();
    });
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

  get cluster(): string {
    return this._cluster;
  }

  showCluster(cluster: string): void {
    this._cluster = cluster;
    this._placeholder.update();
    this._show();
  }

  override dispose(): void {
    this._watch.dispose();
    super.dispose();
  }

  private _show(): void {
    const { model, baseUrl } = this._options;
    const cluster = model.cluster(this._cluster);
    const open = cluster !== undefined && hasDashboard(cluster);
    this._frame.setHidden(!open);
    this._placeholder.setHidden(open);
    // An empty frame lets go of its websockets.
    const wanted = open
      ? dashboardUrl(baseUrl, this._cluster, this.plot)
      : 'about:blank';
    if (wanted !== this._frame.url && (open || this._frame.url !== '')) {
      this._frame.url = wanted;
      // The way to a cluster may be slow; what comes after a while is the page or an error.
      this._waiting.setHidden(!open);
    }
  }

  private readonly _options: IDashboardOptions;
  private readonly _frame: IFrame;
  private readonly _placeholder: ReactWidget;
  private readonly _waiting: Widget;
  private readonly _watch: IDisposable;
  private _cluster: string;
}

function hasDashboard(cluster: ICluster): boolean {
  return cluster.dashboard !== null;
}
