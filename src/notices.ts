/** Tells when a cluster that this page has started is ready, or has failed. */

import { Notification } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import type { IDisposable } from '@lumino/disposable';

import { CommandIDs } from './commands/ids';
import type { ICluster, IClustersModel } from './tokens';
import { amount, isEnded } from './words';

const SHORT_WAIT_SECONDS = 120;
const SHORT_NOTICE_MS = 15000;

interface INoticeOptions {
  model: IClustersModel;
  commands: CommandRegistry;
  trans: TranslationBundle;
}

/** Follow each cluster from its start to its first end of waiting, whatever the page shows meanwhile. */
export function giveNotices(options: INoticeOptions): void {
  const { model } = options;
  const awaited = new Map<string, IDisposable>();
  const look = (): void => {
    for (const [id, watch] of awaited) {
      const cluster = model.cluster(id);
      // One that is not listed has been forgotten, unless the server is silent.
      const gone = cluster === undefined && model.connection === 'ok';
      if (gone || (cluster !== undefined && isSettled(cluster))) {
        awaited.delete(id);
        watch.dispose();
        if (cluster !== undefined) {
          tell(cluster, options);
        }
      }
    }
  };
  model.changed.connect(look);
  model.started.connect((_, cluster) => {
    if (!awaited.has(cluster.id)) {
      awaited.set(cluster.id, model.watch());
      look();
    }
  });
}

function isSettled(cluster: ICluster): boolean {
  return cluster.phase === 'running' || isEnded(cluster.phase);
}

function tell(cluster: ICluster, options: INoticeOptions): void {
  const { commands, trans } = options;
  const action = (label: string, command: string): Notification.IAction => ({
    label,
    callback: () => {
      void commands.execute(command, { cluster: cluster.id });
    }
  });
  if (cluster.phase === 'running') {
    // Who has waited long may be away, and would miss a notice that goes by itself.
    const waited = cluster.phase_since - cluster.created;
    Notification.emit(
      trans.__(
        '%1 is ready with %2 of %3.',
        cluster.name,
        cluster.workers.ready,
        amount(cluster.workers.asked, cluster.unit, trans)
      ),
      'success',
      {
        autoClose: waited < SHORT_WAIT_SECONDS ? SHORT_NOTICE_MS : false,
        actions: [
          {
            ...action(trans.__('Connect notebook'), CommandIDs.connect),
            displayType: 'accent'
          },
          action(trans.__('Dashboard'), CommandIDs.openDashboard)
        ]
      }
    );
  } else if (cluster.phase === 'failed') {
    Notification.emit(
      trans.__('%1 failed. %2', cluster.name, cluster.reason),
      'error',
      {
        autoClose: false,
        actions: [
          action(trans.__('Show cluster'), CommandIDs.showPanel),
          action(trans.__('Show log'), CommandIDs.showLog)
        ]
      }
    );
  }
}
