/** Tells when a cluster that somebody waits for is ready, or has failed. */

import { Notification } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import type { IDisposable } from '@lumino/disposable';

import { CommandIDs } from '../model/commandIds';
import { schema, stringOf, text } from '../commands/register';
import type { ICluster, IClustersModel } from '../model/tokens';
import { amount, isEnded, shownName } from '../model/words';
import { actionFor } from './actions';

const SHORT_WAIT_SECONDS = 120;
const SHORT_NOTICE_MS = 15000;

interface INoticeOptions {
  model: IClustersModel;
  commands: CommandRegistry;
  trans: TranslationBundle;
}

/** Follow each cluster from its start to its first end of waiting, whatever the page shows meanwhile. */
export function giveNotices(options: INoticeOptions): void {
  const { model, commands, trans } = options;
  const awaited = new Map<string, IDisposable>();
  /** Those for which the browser itself shall call the user. */
  const called = new Set<string>();
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
        if (called.delete(id) && cluster !== undefined) {
          call(cluster, trans);
        }
      }
    }
  };
  const await_ = (id: string): void => {
    if (!awaited.has(id)) {
      awaited.set(id, model.watch(true));
      look();
    }
  };
  model.changed.connect(look);
  model.started.connect((_, cluster) => await_(cluster.id));
  commands.addCommand(CommandIDs.notify, {
    label: trans.__('Tell me when it is ready'),
    caption: trans.__(
      'Get a browser notification when a waiting cluster is ready'
    ),
    describedBy: {
      args: schema({ cluster: text(trans.__('Id of the cluster.')) })
    },
    isEnabled: args =>
      isWaiting(model.cluster(stringOf(args, 'cluster') ?? '')),
    isToggled: args => called.has(stringOf(args, 'cluster') ?? ''),
    execute: async args => {
      const id = stringOf(args, 'cluster') ?? '';
      if (!called.delete(id)) {
        called.add(id);
        await_(id);
        await askForCalls(trans);
      }
      commands.notifyCommandChanged(CommandIDs.notify);
    }
  });
}

function isWaiting(cluster: ICluster | undefined): boolean {
  return cluster !== undefined && !isSettled(cluster);
}

function isSettled(cluster: ICluster): boolean {
  return cluster.phase === 'running' || isEnded(cluster.phase);
}

/** Without leave from the browser a notice in the page has to do. */
async function askForCalls(trans: TranslationBundle): Promise<void> {
  const granted =
    'Notification' in window &&
    (await window.Notification.requestPermission()) === 'granted';
  if (!granted) {
    Notification.emit(
      trans.__(
        'Notifications are blocked in this browser; the notice will appear here.'
      ),
      'info',
      { autoClose: SHORT_NOTICE_MS }
    );
  }
}

function call(cluster: ICluster, trans: TranslationBundle): void {
  if (
    'Notification' in window &&
    window.Notification.permission === 'granted'
  ) {
    const note = new window.Notification(
      cluster.phase === 'running'
        ? readyWords(cluster, trans)
        : trans.__('%1 has ended.', shownName(cluster, trans)),
      { body: cluster.reason, tag: cluster.id }
    );
    note.onclick = () => window.focus();
  }
}

function readyWords(cluster: ICluster, trans: TranslationBundle): string {
  return trans.__(
    '%1 is ready with %2 of %3.',
    shownName(cluster, trans),
    cluster.workers.ready,
    amount(cluster.workers.asked, cluster.unit, trans)
  );
}

function tell(cluster: ICluster, options: INoticeOptions): void {
  const { commands, trans } = options;
  const action = actionFor.bind(null, commands, cluster.id);
  if (cluster.phase === 'running') {
    // Who has waited long may be away, and would miss a notice that goes by itself.
    const waited = cluster.phase_since - cluster.created;
    Notification.emit(readyWords(cluster, trans), 'success', {
      autoClose: waited < SHORT_WAIT_SECONDS ? SHORT_NOTICE_MS : false,
      actions: [
        {
          ...action(trans.__('Connect notebook'), CommandIDs.connect),
          displayType: 'accent'
        },
        action(trans.__('Dashboard'), CommandIDs.openDashboard)
      ]
    });
  } else if (cluster.phase === 'failed') {
    Notification.emit(
      trans.__(
        '%1 failed. %2',
        shownName(cluster, trans),
        cluster.reason.split('\n')[0]
      ),
      'error',
      {
        autoClose: false,
        actions: [
          {
            ...action(trans.__('Fix and retry'), CommandIDs.fix),
            displayType: 'accent'
          },
          action(trans.__('Show cluster'), CommandIDs.showPanel),
          action(trans.__('Show log'), CommandIDs.showLog)
        ]
      }
    );
  }
}
