/** What the buttons in the panel do: each runs a command. */

import type { INotebookTracker } from '@jupyterlab/notebook';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import { Menu } from '@lumino/widgets';

import type { Absence } from '../notify/absence';
import type { ActiveCluster } from '../model/active';
import type { Preferences } from '../model/preferences';
import { selectDropped } from '../notebook/clientCode';
import { CommandIDs } from '../model/commandIds';
import { plotsOf } from '../dashboard/plots';
import type { ICluster, IClustersModel } from '../model/tokens';
import type { IListActions } from './clusters';
import { dragCode } from './drag';
import { isEnded, isOurs, isQueued } from '../model/words';

interface IActionOptions {
  commands: CommandRegistry;
  model: IClustersModel;
  active: ActiveCluster;
  absence: Absence;
  notebooks: INotebookTracker | null;
  preferences: Preferences;
  trans: TranslationBundle;
}

export function createCardActions(options: IActionOptions): IListActions {
  const { absence, active, commands, model, notebooks, trans } = options;
  const run = (command: string) => (cluster: ICluster) => {
    void commands.execute(command, { cluster: cluster.id });
  };
  return {
    newCluster: profile => {
      void commands.execute(
        CommandIDs.create,
        profile === undefined ? {} : { profile }
      );
    },
    setUp: () => void commands.execute(CommandIDs.setUp),
    openNotebook: () => {
      void commands.execute(CommandIDs.openNotebook);
    },
    tryHere: () => void commands.execute(CommandIDs.tryHere),
    openDashboard: run(CommandIDs.openDashboard),
    openDetails: run(CommandIDs.openDetails),
    connect: run(CommandIDs.connect),
    stop: run(CommandIDs.stop),
    stopByForce: run(CommandIDs.stopByForce),
    detach: run(CommandIDs.detach),
    forget: run(CommandIDs.forget),
    startAgain: run(CommandIDs.startAgain),
    fix: run(CommandIDs.fix),
    resubmit: run(CommandIDs.resubmit),
    notify: async cluster => {
      await commands.execute(CommandIDs.notify, { cluster: cluster.id });
    },
    isAwaited: cluster =>
      commands.isToggled(CommandIDs.notify, { cluster: cluster.id }),
    touch: cluster => {
      active.id = cluster.id;
    },
    news: cluster => absence.news(cluster.id),
    dismissNews: cluster => absence.dismiss(cluster.id),
    isLossDismissed: cluster => absence.isLossDismissed(cluster),
    dismissLoss: cluster => absence.dismissLoss(cluster),
    drag: (cluster, event) => {
      if (event.button === 0) {
        dragCode({
          event: event.nativeEvent,
          label: trans.__('Connect to %1', cluster.name),
          code: async () => (await model.api.clientCode(cluster.id)).connect,
          onDropped: cell => {
            if (notebooks !== null) {
              selectDropped(cell, notebooks);
            }
          }
        });
      }
    },
    events: cluster => model.api.events(cluster.id),
    jobs: cluster => model.api.jobs(cluster.id),
    showLog: run(CommandIDs.showLog),
    // Not by the command: the card shows a refusal beside its own field.
    scale: (cluster, target) => model.scale(cluster.id, target),
    showMore: (cluster, anchor, pointer) => {
      const menu = createCardMenu(options, cluster);
      const { left, bottom } = anchor.getBoundingClientRect();
      menu.aboutToClose.connect(() => {
        // The chosen item still runs after the menu has closed, and may move the focus itself.
        requestAnimationFrame(() => {
          menu.dispose();
          if (document.activeElement === document.body) {
            anchor.focus();
          }
        });
      });
      menu.open(pointer?.clientX ?? left, pointer?.clientY ?? bottom);
    }
  };
}

function createCardMenu(options: IActionOptions, cluster: ICluster): Menu {
  const { commands, trans } = options;
  const menu = new Menu({ commands });
  const args = { cluster: cluster.id };
  const addRecipes = (): void => {
    for (const form of ['command', 'python', 'profile']) {
      menu.addItem({ command: CommandIDs.copyRecipe, args: { ...args, form } });
    }
  };
  menu.addItem({ command: CommandIDs.openDetails, args });
  if (isEnded(cluster.phase)) {
    menu.addItem({ command: CommandIDs.startAgain, args });
    addRecipes();
    return menu;
  }
  if (isQueued(cluster)) {
    menu.addItem({ command: CommandIDs.scale, args });
  }
  for (const form of ['magic', 'dask']) {
    menu.addItem({ command: CommandIDs.connect, args: { ...args, form } });
  }
  const plots = new Menu({ commands });
  plots.title.label = trans.__('Dashboard plots');
  const pinned = options.preferences.get('pinnedPlots');
  for (const plot of pinned.length > 0
    ? pinned
    : plotsOf(cluster.unit, trans).map(({ path }) => path)) {
    plots.addItem({
      command: CommandIDs.openDashboard,
      args: { ...args, plot }
    });
  }
  plots.addItem({ type: 'separator' });
  plots.addItem({ command: CommandIDs.choosePlot, args });
  menu.addItem({ type: 'submenu', submenu: plots });
  menu.addItem({ command: CommandIDs.openLayout, args });
  menu.addItem({ type: 'separator' });
  if (isOurs(cluster)) {
    menu.addItem({ command: CommandIDs.benchmark, args });
    menu.addItem({ command: CommandIDs.rename, args });
  }
  menu.addItem({ command: CommandIDs.showLog, args });
  menu.addItem({ command: CommandIDs.startAgain, args });
  addRecipes();
  return menu;
}
