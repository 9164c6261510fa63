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
  setToolbar
} from '@jupyterlab/apputils';
import { IDefaultFileBrowser } from '@jupyterlab/filebrowser';
import { ILauncher } from '@jupyterlab/launcher';
import { INotebookTracker } from '@jupyterlab/notebook';
import { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { IRunningSessionManagers } from '@jupyterlab/running';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { IStateDB } from '@jupyterlab/statedb';
import { IStatusBar } from '@jupyterlab/statusbar';
import type { TranslationBundle } from '@jupyterlab/translation';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';

import { Absence } from './notify/absence';
import { createCardActions } from './panel/actions';
import { ActiveCluster } from './model/active';
import { AutoConnect } from './notebook/autoConnect';
import { addCommands } from './commands';
import { CommandIDs } from './model/commandIds';
import { warnOfEndings } from './notify/endings';
import { warnOfLosses } from './notify/losses';
import { ClustersModel } from './model/model';
import { giveNotices } from './notify/notices';
import { showOutputs } from './notebook/output';
import { Preferences } from './model/preferences';
import { runningClusters } from './panel/running';
import { ClustersPanel } from './panel/sidebar';
import { addStatusItem } from './panel/status';
import { DETAILS_QUERY, Tabs } from './dashboard/tabs';
import { IClustersModel } from './model/tokens';

const TRANSLATION_DOMAIN = 'jupyter_gpucluster';
const PANEL_TOOLBAR = 'GpuClusters';
const PANEL_RANK = 900;

const modelPlugin: JupyterFrontEndPlugin<IClustersModel> = {
  id: 'jupyter-gpucluster:model',
  description: 'Provides the GPU clusters of this user.',
  autoStart: true,
  provides: IClustersModel,
  optional: [ITranslator],
  activate: (
    app: JupyterFrontEnd,
    translator: ITranslator | null
  ): IClustersModel =>
    new ClustersModel({
      trans: bundleOf(translator),
      serverSettings: app.serviceManager.serverSettings
    })
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
    ISettingRegistry,
    IStateDB
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
    settings: ISettingRegistry | null,
    state: IStateDB | null
  ) => {
    translator ??= nullTranslator;
    const trans = bundleOf(translator);
    const { commands, shell } = app;
    const active = new ActiveCluster();
    const absence = new Absence({ model, state, trans });
    const preferences = new Preferences(settings);

    const actions = createCardActions({
      absence,
      active,
      commands,
      model,
      notebooks,
      preferences,
      trans
    });
    const panel = new ClustersPanel({
      model,
      actions,
      state,
      trans
    });
    absence.changed.connect(() => panel.redraw());
    model.started.connect((_, cluster) => {
      active.id = cluster.id;
    });
    const showPanel = (): void => shell.activateById(panel.id);
    const reveal = (cluster: string): void => {
      showPanel();
      panel.reveal(cluster);
    };

    const tabs = new Tabs({
      app,
      labShell,
      model,
      active,
      preferences,
      notebooks,
      actions,
      reveal,
      trans
    });
    const connected =
      notebooks === null
        ? null
        : new AutoConnect({ model, notebooks, preferences, state, trans });

    addCommands({
      app,
      model,
      notebooks,
      showPanel,
      reveal,
      tabs,
      active,
      preferences,
      remember: (notebook, cluster) => connected?.remember(notebook, cluster),
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
      void tabs.restore(restorer);
    }
    // The palette offers what the clusters allow, even before the panel was ever shown.
    void app.restored.then(() => {
      const wanted = new URLSearchParams(window.location.search);
      const details = wanted.get(DETAILS_QUERY);
      if (details !== null && labShell !== null) {
        tabs.openDetails(details);
      }
      return model.refresh();
    });
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
  description:
    'Notices when a cluster is ready, has failed or is about to end.',
  autoStart: true,
  requires: [IClustersModel],
  optional: [ITranslator],
  activate: (
    { commands }: JupyterFrontEnd,
    model: IClustersModel,
    translator: ITranslator | null
  ) => {
    const trans = bundleOf(translator);
    giveNotices({ model, commands, trans });
    warnOfEndings({ model, commands, trans });
    warnOfLosses({ model, commands, trans });
  }
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
    { commands, started }: JupyterFrontEnd,
    model: IClustersModel,
    managers: IRunningSessionManagers | null,
    translator: ITranslator | null
  ) => {
    const trans = bundleOf(translator);
    managers?.add(runningClusters({ model, commands, trans, started }));
  }
};

const outputPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-gpucluster:output',
  description: 'Shows clusters in the outputs of notebooks as they are now.',
  autoStart: true,
  requires: [IClustersModel, IRenderMimeRegistry],
  optional: [ITranslator],
  activate: (
    { commands }: JupyterFrontEnd,
    model: IClustersModel,
    rendermime: IRenderMimeRegistry,
    translator: ITranslator | null
  ) => {
    showOutputs(rendermime, { model, commands, trans: bundleOf(translator) });
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
  runningPlugin,
  outputPlugin
];
