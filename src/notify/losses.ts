/** Warns when a cluster loses workers, wherever the user is. */

import { Notification } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';

import { CommandIDs } from '../model/commandIds';
import type { IClustersModel, ILoss } from '../model/tokens';
import { lossWords, shownName } from '../model/words';
import { actionFor } from './actions';

/** An older loss is no news: the page was opened later, or the loss still lasts. */
const NEWS_SECONDS = 600;
/** Losses that follow each other so closely share a notice. */
const TOGETHER_SECONDS = 60;
/** Lab cuts a notice off after so many characters. */
const LONGEST = 140;

interface ILossOptions {
  model: IClustersModel;
  commands: CommandRegistry;
  trans: TranslationBundle;
}

interface ITold {
  /** The notice's id. */
  id: string;
  /** Of the loss that it told first and last; epoch seconds. */
  first: number;
  last: number;
}

/** Tell of each loss once. */
export function warnOfLosses(options: ILossOptions): void {
  const { model, commands, trans } = options;
  const action = actionFor.bind(null, commands);
  const told = new Map<string, ITold>();
  model.changed.connect(() => {
    for (const cluster of model.clusters) {
      const { id, loss } = cluster;
      const before = told.get(id);
      if (
        !loss ||
        cluster.phase === 'stopped' ||
        loss.time <= (before?.last ?? Date.now() / 1000 - NEWS_SECONDS)
      ) {
        continue;
      }
      const message = notice(shownName(cluster, trans), loss, trans);
      const joins =
        before !== undefined &&
        loss.time - before.first <= TOGETHER_SECONDS &&
        Notification.manager.has(before.id);
      if (joins) {
        Notification.update({ id: before.id, message });
        before.last = loss.time;
        continue;
      }
      told.set(id, {
        id: Notification.emit(message, 'warning', {
          autoClose: false,
          actions: [
            action(id, trans.__('Show cluster'), CommandIDs.showPanel),
            action(id, trans.__('Show log'), CommandIDs.showLog)
          ]
        }),
        first: loss.time,
        last: loss.time
      });
    }
  });
}

/** The whole sentence, or where that is too long the half without the replacements. */
function notice(name: string, loss: ILoss, trans: TranslationBundle): string {
  const whole = trans.__('%1: %2', name, lossWords(loss, trans));
  return whole.length <= LONGEST
    ? whole
    : trans.__(
        '%1: %2',
        name,
        lossWords({ ...loss, waiting: 0, starting: 0, replaced: 0 }, trans)
      );
}
