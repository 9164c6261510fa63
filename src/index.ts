/** The plugins: the model that others may use, and the front end on top of it. */

import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ILabShell, ILayoutRestorer } from '@jupyterlab/application';
import {
  createToolbarFactory,
  ICommandPalette,
  IToolbarWidgetRegistry,
  setToolbar,
  WidgetTracker
} from '@jupyterlab/apputils';
import { IDefaultFileBrowser } from '@jupyterlab/filebrowser';
import { ILauncher } from '@jupyterlab/launcher';
import { INotebookTracker } from '@jupyterlab/notebook';
import { IRunningSessionManagers } from '@jupyterlab/running';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { IStatusBar } from '@jupyterlab/statusbar';
import type { TranslationBundle } from '@jupyterlab/translation';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';

import { createCardActions } from './actions';
import { addCommands } from './commands';
import { CommandIDs } from './commands/ids';
import { dashboardUrl, DashboardTab } from './dashboard';
import { ClustersModel } from './model';
import { giveNotices } from './notices';
import { runningClusters } from './running';
import { ClustersPanel } from './sidebar';
import { addStatusItem } from './status';
import { IClustersModel } from './tokens';

const TRANSLATION_DOMAIN = 'jupyter_gpucluster';
const PANEL_TOOLBAR = 'GpuClusters';
const PANEL_RANK = 900;

const modelPlugin: JupyterFrontEndPlugin<IClustersModel> = {
  id: 'jupyter-gpucluster:model',
  description: 'Provides the GPU clusters of this user.',
  autoStart: true,
  provides: IClustersModel,
  activate: (app: JupyterFrontEnd): IClustersModel =>
    new ClustersModel({ serverSettings: app.serviceManager.serverSettings })
};

const frontEndPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-gpucluster:plugin',
  description: 'Adds panel, dialogs, dashboards and commands for GPU clusters.',
  autoStart: true,
  requires: [IClustersModel],
  optional: [
    ITranslator,
    ILabShell,
    ILayoutRestorer,
    ICommandPalette,
    ILauncher,
    INotebookTracker,
    IDefaultFileBrowser,
    IToolbarWidgetRegistry,
    ISettingRegistry
  ],
  activate: (
    app: JupyterFrontEnd,
    model: IClustersModel,
    translator: ITranslator | null,
    labShell: ILabShell | null,
    restorer: ILayoutRestorer | null,
    palette: ICommandPalette | null,
    launcher: ILauncher | null,
    notebooks: INotebookTracker | null,
    files: IDefaultFileBrowser | null,
    toolbars: IToolbarWidgetRegistry | null,
    settings: ISettingRegistry | null
  ) => {
    translator ??= nullTranslator;
    const trans = bundleOf(translator);
    const { commands, shell, serviceManager } = app;
    const { baseUrl } = serviceManager.serverSettings;

    const panel = new ClustersPanel({
      model,
      actions: createCardActions({ commands, model, trans }),
      trans
    });
    const showPanel = (): void => shell.activateById(panel.id);
    const reveal = (cluster: string): void => {
      showPanel();
      panel.reveal(cluster);
    };

    const tracker = new WidgetTracker<DashboardTab>({
      namespace: 'jupyter-gpucluster-dashboard'
    });
    const openDashboard = (cluster: string, plot: string): void => {
      if (labShell === null) {
        // Notebook 7 has room for one document only.
        window.open(dashboardUrl(baseUrl, cluster, plot), '_blank', 'noopener');
        return;
      }
      let tab = tracker.find(
        item => item.cluster === cluster && item.plot === plot
      );
      if (tab === undefined) {
        // eslint-disable-next-line jupyter/require-disposable-ownership -- the shell ends it on closing
        tab = new DashboardTab({
          model,
          cluster,
          plot,
          baseUrl,
          onShowCluster: () => reveal(cluster),
          trans
        });
        void tracker.add(tab);
        labShell.add(tab, 'main');
      }
      labShell.activateById(tab.id);
    };

    addCommands({
      app,
      model,
      notebooks,
      showPanel,
      reveal,
      openDashboard,
      directory: () => files?.model.path ?? '',
      trans
    });
    if (toolbars !== null && settings !== null) {
      setToolbar(
        panel,
        createToolbarFactory(
          toolbars,
          settings,
          PANEL_TOOLBAR,
          frontEndPlugin.id,
          translator
        )
      );
    }
    shell.add(panel, 'left', { rank: PANEL_RANK, type: 'GPU clusters' });
    if (restorer !== null) {
      restorer.add(panel, panel.id);
      void restorer.restore(tracker, {
        command: CommandIDs.openDashboard,
        args: tab => ({ cluster: tab.cluster, plot: tab.plot }),
        name: tab => `${tab.cluster}/${tab.plot}`
      });
    }
    // The palette offers what the clusters allow, even before the panel was ever shown.
    void app.restored.then(() => model.refresh());
    for (const command of Object.values(CommandIDs)) {
      palette?.addItem({ command, category: trans.__('GPU clusters') });
    }
    launcher?.add({
      command: CommandIDs.create,
      args: { isLauncher: true }
    });
  }
};

const noticesPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-gpucluster:notices',
  description: 'Tells when a cluster is ready or has failed.',
  autoStart: true,
  requires: [IClustersModel],
  optional: [ITranslator],
  activate: (
    { commands }: JupyterFrontEnd,
    model: IClustersModel,
    translator: ITranslator | null
  ) => giveNotices({ model, commands, trans: bundleOf(translator) })
};

const statusPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-gpucluster:status',
  description: 'Adds the clusters to the status bar.',
  autoStart: true,
  requires: [IClustersModel],
  optional: [IStatusBar, ITranslator],
  activate: (
    { commands }: JupyterFrontEnd,
    model: IClustersModel,
    bar: IStatusBar | null,
    translator: ITranslator | null
  ) => {
    if (bar !== null) {
      addStatusItem({ bar, model, commands, trans: bundleOf(translator) });
    }
  }
};

const runningPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-gpucluster:running',
  description: 'Adds the clusters to the panel of everything that runs.',
  autoStart: true,
  requires: [IClustersModel],
  optional: [IRunningSessionManagers, ITranslator],
  activate: (
    { commands }: JupyterFrontEnd,
    model: IClustersModel,
    managers: IRunningSessionManagers | null,
    translator: ITranslator | null
  ) => {
    const trans = bundleOf(translator);
    managers?.add(runningClusters({ model, commands, trans }));
  }
};

function bundleOf(translator: ITranslator | null): TranslationBundle {
  return (translator ?? nullTranslator).load(TRANSLATION_DOMAIN);
}

export default [
  modelPlugin,
  frontEndPlugin,
  noticesPlugin,
  statusPlugin,
  runningPlugin
];
