/** Warns before a clock ends a cluster, while there is time to save results or to replace it. */

import { Notification } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';

import { CommandIDs } from '../model/commandIds';
import type { ICluster, IClustersModel } from '../model/tokens';
import type { IEnd } from '../model/words';
import { amount, bytes, isSteerable, moment, nextEnd } from '../model/words';
import { actionFor } from './actions';

const AHEAD_SECONDS = 600;

interface IEndingOptions {
  model: IClustersModel;
  commands: CommandRegistry;
  trans: TranslationBundle;
}

/** Tell of each end once; one that was put off is told of again when it is near again. */
export function warnOfEndings(options: IEndingOptions): void {
  const { model } = options;
  const told = new Map<string, string>();
  model.changed.connect(() => {
    for (const cluster of model.clusters) {
      const end = isSteerable(cluster.phase) ? nextEnd(cluster) : null;
      const left = (end?.ends ?? Infinity) - Date.now() / 1000;
      if (end === null || left > AHEAD_SECONDS) {
        told.delete(cluster.id);
      } else if (told.get(cluster.id) !== end.name) {
        told.set(cluster.id, end.name);
        warn(cluster, end, options);
      }
    }
  });
}

function warn(cluster: ICluster, end: IEnd, options: IEndingOptions): void {
  const { commands, trans } = options;
  const action = actionFor.bind(null, commands, cluster.id);
  Notification.emit(
    `${trans.__('%1 ends at %2 (%3).', cluster.name, moment(end.ends), end.name)} ` +
      // Lab cuts a notice off after 140 characters.
      lossWords(cluster, trans),
    'warning',
    {
      autoClose: false,
      actions: [
        end.idle
          ? action(trans.__('Keep for 1 h'), CommandIDs.keep)
          : action(trans.__('Start a replacement'), CommandIDs.startAgain),
        action(trans.__('Show cluster'), CommandIDs.showPanel)
      ]
    }
  );
}

/** What goes with the cluster, and what to do before. */
function lossWords(cluster: ICluster, trans: TranslationBundle): string {
  const ready = amount(cluster.workers.ready, cluster.unit, trans);
  return cluster.memory_used > 0
    ? trans.__(
        'Save what you need: %1 end, and %2 in their memory is lost.',
        ready,
        bytes(cluster.memory_used)
      )
    : trans.__('Save what you need: %1 end.', ready);
}
