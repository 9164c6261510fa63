/** The clusters' section in Lab's panel of everything that runs. */

import type { IRunningSessions } from '@jupyterlab/running';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';

import { CommandIDs } from '../model/commandIds';
import { showFailure } from '../ui/failure';
import { clusterIcon } from '../ui/icons';
import type { ICluster, IClustersModel } from '../model/tokens';
import {
  amount,
  isEnded,
  isOurs,
  isSteerable,
  phaseWord,
  shownName
} from '../model/words';

interface IRunningOptions {
  model: IClustersModel;
  commands: CommandRegistry;
  trans: TranslationBundle;
  /** Resolves when Lab has put its panels together. */
  started: Promise<unknown>;
}

/** The clusters that have not ended; to stop one asks first, as it does anywhere else. */
export function runningClusters(
  options: IRunningOptions
): IRunningSessions.IManager {
  const { model, commands, trans } = options;
  const live = (): ICluster[] =>
    model.clusters.filter(cluster => !isEnded(cluster.phase));
  // Lab 4.2 asks for the words once, as it makes its panel: names would be those of then.
  let asksAnew = false;
  void options.started.then(() => {
    asksAnew = true;
  });
  return {
    name: trans.__('GPU clusters'),
    running: () => live().map(cluster => itemOf(cluster, commands, trans)),
    refreshRunning: () => void model.refresh(),
    runningChanged: model.changed,
    shutdownLabel: trans.__('Stop cluster…'),
    shutdownAllLabel: trans.__('Stop all clusters'),
    get shutdownAllConfirmationText(): string {
      const names = live()
        .filter(isOurs)
        .map(cluster => cluster.name);
      return trans.__(
        'This ends %1. Schedulers and workers end, running tasks are cancelled and results in memory are lost.',
        asksAnew ? names.join(', ') : trans.__('all clusters started here')
      );
    },
    shutdownAll: () => {
      const steerable = live().filter(
        cluster => isOurs(cluster) && isSteerable(cluster.phase)
      );
      // One that cannot be stopped must not keep the others.
      void Promise.all(
        steerable.map(cluster =>
          model
            .stop(cluster.id)
            .catch((error: unknown) => showFailure(error, trans))
        )
      );
    }
  };
}

function itemOf(
  cluster: ICluster,
  commands: CommandRegistry,
  trans: TranslationBundle
): IRunningSessions.IRunningItem {
  const args = { cluster: cluster.id };
  const ready = amount(cluster.workers.ready, cluster.unit, trans);
  return {
    icon: () => clusterIcon,
    label: () => shownName(cluster, trans),
    labelTitle: () => trans.__('%1 on %2', cluster.name, cluster.title),
    detail: () =>
      trans.__('%1, %2 ready', phaseWord(cluster.phase, trans), ready),
    open: () => void commands.execute(CommandIDs.showPanel, args),
    shutdown: () =>
      void commands.execute(
        isOurs(cluster) ? CommandIDs.stop : CommandIDs.detach,
        args
      )
  };
}
