/** The tabs in the main area: dashboards and details, opened, restored, arranged, and led along. */

import type {
  ILabShell,
  ILayoutRestorer,
  JupyterFrontEnd
} from '@jupyterlab/application';
import { Dialog, WidgetTracker } from '@jupyterlab/apputils';
import { URLExt } from '@jupyterlab/coreutils';
import type { INotebookTracker } from '@jupyterlab/notebook';
import type { TranslationBundle } from '@jupyterlab/translation';

import { ReactWidget } from '@jupyterlab/ui-components';
import type { Widget } from '@lumino/widgets';
import * as React from 'react';

import type { ActiveCluster } from '../model/active';
import { CommandIDs } from '../model/commandIds';
import { dashboardUrl, DashboardTab } from './dashboard';
import { PlotPicker } from './picker';
import { allPlots, plotsOf } from './plots';
import type { ICardActions } from '../details/cardActions';
import { DetailsTab } from '../details/details';
import { KeyDialog } from '../ui/dialogs';
import type { IClustersModel } from '../model/tokens';
import type { Preferences } from '../model/preferences';

/** Plots below one another; more of them share the last place. */
const ROWS = 3;
const DEFAULT_PLOTS = 3;
/** Asks a page of Lab to show the details of a cluster. */
export const DETAILS_QUERY = 'gpucluster-details';

interface ITabsOptions {
  app: JupyterFrontEnd;
  /** Null where the main area has room for one document only, as in Notebook 7. */
  labShell: ILabShell | null;
  model: IClustersModel;
  active: ActiveCluster;
  preferences: Preferences;
  /** Null where there are no notebooks. */
  notebooks: INotebookTracker | null;
  actions: ICardActions;
  reveal: (cluster: string) => void;
  trans: TranslationBundle;
}

type Place = Parameters<ILabShell['add']>[2];

export class Tabs {
  constructor(private readonly _options: ITabsOptions) {
    const follow = (): void => this._follow();
    _options.active.changed.connect(follow);
    _options.preferences.changed.connect(follow);
  }

  /** The plots that are open now. */
  get plots(): string[] {
    const plots: string[] = [];
    this._dashboards.forEach(tab => plots.push(tab.plot));
    return [...new Set(plots)];
  }

  async restore(restorer: ILayoutRestorer): Promise<void> {
    await Promise.all([
      restorer.restore(this._dashboards, {
        command: CommandIDs.openDashboard,
        args: tab => ({ cluster: tab.cluster, plot: tab.plot }),
        name: tab => `${tab.cluster}/${tab.plot}`
      }),
      restorer.restore(this._details, {
        command: CommandIDs.openDetails,
        args: tab => ({ cluster: tab.cluster }),
        name: tab => tab.cluster
      })
    ]);
  }

  /** Show a plot of a cluster; beside the notebook in use, and at a place that is given also if it is open. */
  openDashboard(cluster: string, plot: string, place?: Place): void {
    const { labShell, model, reveal, trans } = this._options;
    if (labShell === null) {
      window.open(this._dashboardUrl(cluster, plot), '_blank', 'noopener');
      return;
    }
    let tab = this._dashboards.find(
      item => item.cluster === cluster && item.plot === plot
    );
    if (tab === undefined) {
      // eslint-disable-next-line jupyter/require-disposable-ownership -- the shell ends it on closing
      tab = new DashboardTab({
        model,
        cluster,
        plot,
        baseUrl: this._baseUrl,
        onShowCluster: reveal,
        onShowTimeline: id => this.openDetails(id, 'timeline'),
        trans
      });
      void this._dashboards.add(tab);
      labShell.add(tab, 'main', place ?? this._besideNotebook());
    } else if (place !== undefined) {
      labShell.add(tab, 'main', place);
    }
    labShell.activateById(tab.id);
  }

  /** Show the plots of the saved layout beside what is open. */
  openLayout(cluster: string): void {
    const { labShell, model, preferences, trans } = this._options;
    const saved = preferences.get('layout');
    const unit = model.cluster(cluster)?.unit ?? '';
    const plots =
      saved.length > 0
        ? saved
        : plotsOf(unit, trans)
            .slice(0, DEFAULT_PLOTS)
            .map(plot => plot.path);
    const notebook = this._notebook();
    let ref = (notebook ?? labShell?.currentWidget)?.id ?? null;
    plots.forEach((plot, index) => {
      const mode =
        index === 0
          ? 'split-right'
          : index < ROWS
            ? 'split-bottom'
            : 'tab-after';
      this.openDashboard(cluster, plot, { mode, ref });
      const tab = this._dashboards.find(
        item => item.cluster === cluster && item.plot === plot
      );
      ref = tab?.id ?? ref;
    });
    if (notebook !== undefined) {
      labShell?.activateById(notebook.id);
    }
  }

  /** Let the user choose one of all plots that a cluster has. */
  async choosePlot(cluster: string): Promise<void> {
    const { model, preferences, trans } = this._options;
    const dialog = new KeyDialog({
      title: trans.__('Plots of %1', model.cluster(cluster)?.name ?? cluster),
      body: ReactWidget.create(
        React.createElement(PlotPicker, {
          load: async () => allPlots(await model.api.plots(cluster), trans),
          pinned: preferences.get('pinnedPlots'),
          onPin: pinned => void preferences.set('pinnedPlots', pinned),
          onOpen: plot => {
            dialog.reject();
            this.openDashboard(cluster, plot);
          },
          trans
        })
      ),
      buttons: [Dialog.cancelButton({ label: trans.__('Close') })],
      focusNodeSelector: 'input'
    });
    await dialog.launch();
  }

  /** The notebook that the user sees; undefined where there is none. */
  private _notebook(): Widget | undefined {
    const panel = this._options.notebooks?.currentWidget;
    return panel?.isVisible ? panel : undefined;
  }

  /** Where a new plot hides no notebook: with other plots, else beside the notebook. */
  private _besideNotebook(): Place {
    const plots = this._dashboards.find(tab => tab.isVisible);
    if (plots !== undefined) {
      return { mode: 'tab-after', ref: plots.id };
    }
    const notebook = this._notebook();
    return notebook && { mode: 'split-right', ref: notebook.id };
  }

  /** Show all that is known of a cluster. */
  openDetails(cluster: string, section = ''): void {
    const { actions, labShell, model, reveal, trans } = this._options;
    if (labShell === null) {
      const page = URLExt.join(this._baseUrl, 'lab');
      const query = URLExt.objectToQueryString({ [DETAILS_QUERY]: cluster });
      window.open(page + query, '_blank', 'noopener');
      return;
    }
    let tab = this._details.find(item => item.cluster === cluster);
    if (tab === undefined) {
      // eslint-disable-next-line jupyter/require-disposable-ownership -- the shell ends it on closing
      tab = new DetailsTab({
        model,
        cluster,
        actions,
        onShowCluster: reveal,
        trans
      });
      void this._details.add(tab);
      labShell.add(tab, 'main');
    }
    if (section !== '') {
      tab.showSection(section);
    }
    labShell.activateById(tab.id);
  }

  /** Lead every plot along to the cluster that is worked with, unless that one has its own tab. */
  private _follow(): void {
    const { active, model, preferences } = this._options;
    const wanted = model.cluster(active.id);
    if (!preferences.get('followActiveCluster') || !wanted?.dashboard) {
      return;
    }
    const shown = new Set<string>();
    this._dashboards.forEach(tab => {
      if (tab.cluster === wanted.id) {
        shown.add(tab.plot);
      }
    });
    this._dashboards.forEach(tab => {
      if (!shown.has(tab.plot)) {
        shown.add(tab.plot);
        tab.showCluster(wanted.id);
        void this._dashboards.save(tab);
      }
    });
  }

  private _dashboardUrl(cluster: string, plot: string): string {
    return dashboardUrl(this._baseUrl, cluster, plot);
  }

  private get _baseUrl(): string {
    return this._options.app.serviceManager.serverSettings.baseUrl;
  }

  private readonly _dashboards = new WidgetTracker<DashboardTab>({
    namespace: 'jupyter-gpucluster-dashboard'
  });
  private readonly _details = new WidgetTracker<DetailsTab>({
    namespace: 'jupyter-gpucluster-details'
  });
}
