/** Commands that change a cluster: scale, rename, stop and forget it. */

import { InputDialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';

import { ApiError } from '../model/api';
import { suspectOf } from '../start/blame';
import { notebooksOf } from '../notebook/clientCode';
import type { FieldErrors } from '../start/draft';
import { askNewCluster } from '../start/newCluster';
import type { ICluster } from '../model/tokens';
import {
  amount,
  bytes,
  isEnded,
  isOurs,
  isQueued,
  isSteerable,
  isStuck,
  moment
} from '../model/words';
import { confirmed } from '../ui/dialogs';
import { CommandIDs } from '../model/commandIds';
import type { ICommandOptions } from './register';
import { addClusterCommand, stringOf, text } from './register';

/** The status of an answer that says that a head does not answer. */
const SILENT = 503;

export function addLifeCommands(options: ICommandOptions): void {
  const { model, notebooks, trans } = options;
  addClusterCommand(options, CommandIDs.scale, {
    label: trans.__('Scale cluster…'),
    caption: trans.__('Change how many workers a cluster has'),
    args: {
      workers: {
        type: 'integer',
        minimum: 1,
        description: trans.__(
          'How many workers; a dialog asks if it is missing.'
        )
      }
    },
    applies: cluster => isOurs(cluster) && isSteerable(cluster.phase),
    execute: async (cluster, args) => {
      const workers =
        typeof args.workers === 'number'
          ? args.workers
          : await askNumber(cluster, trans);
      if (workers !== null) {
        await model.scale(cluster.id, { workers });
      }
    }
  });
  addClusterCommand(options, CommandIDs.rename, {
    label: trans.__('Rename cluster…'),
    caption: trans.__('Give a cluster another name'),
    args: {
      name: text(trans.__('The new name; a dialog asks if it is missing.'))
    },
    applies: cluster => isOurs(cluster) && isSteerable(cluster.phase),
    execute: async (cluster, args) => {
      const name =
        stringOf(args, 'name') ??
        (
          await InputDialog.getText({
            title: trans.__('Rename %1', cluster.name),
            label: trans.__('New name'),
            text: cluster.name,
            okLabel: trans.__('Rename')
          })
        ).value;
      if (name !== null && name !== '' && name !== cluster.name) {
        await model.rename(cluster.id, name);
      }
    }
  });
  addClusterCommand(options, CommandIDs.keep, {
    label: trans.__('Keep cluster for 1 h'),
    caption: trans.__('Give an idle cluster another hour'),
    applies: cluster =>
      isOurs(cluster) &&
      isSteerable(cluster.phase) &&
      cluster.clocks.some(({ kind, ends }) => kind === 'idle' && ends !== null),
    execute: cluster => model.keep(cluster.id)
  });
  addClusterCommand(options, CommandIDs.stop, {
    label: trans.__('Stop cluster…'),
    caption: trans.__('End a cluster and all its workers'),
    applies: cluster => isOurs(cluster) && isSteerable(cluster.phase),
    execute: async cluster => {
      if (cluster.phase === 'unreachable') {
        // Nobody is there to be asked: only the processes and jobs themselves can be ended.
        await stopByForce(
          cluster,
          trans.__('Its scheduler does not answer.'),
          options
        );
        return;
      }
      const sure = await confirmed({
        title: trans.__('Stop %1?', cluster.name),
        body: consequences(
          cluster,
          notebooks === null ? [] : notebooksOf(cluster, notebooks),
          trans
        ),
        refuse: trans.__('Keep it'),
        accept: trans.__('Stop cluster'),
        warn: true
      });
      if (!sure) {
        return;
      }
      try {
        await model.stop(cluster.id);
      } catch (error) {
        if (!(error instanceof ApiError) || error.status !== SILENT) {
          throw error;
        }
        await stopByForce(cluster, error.message, options);
      }
    }
  });
  addClusterCommand(options, CommandIDs.stopByForce, {
    label: trans.__('Stop cluster by force…'),
    caption: trans.__('End a cluster whose scheduler does not answer'),
    applies: cluster =>
      isOurs(cluster) &&
      (cluster.phase === 'unreachable' || isStuck(cluster, Date.now() / 1000)),
    execute: cluster =>
      stopByForce(
        cluster,
        trans.__(
          'Its stop was requested at %1, and it has not confirmed its end.',
          moment(cluster.phase_since)
        ),
        options
      )
  });
  addClusterCommand(options, CommandIDs.detach, {
    label: trans.__('Detach cluster…'),
    caption: trans.__('Take a cluster that another user started off the list'),
    applies: cluster => !isOurs(cluster) && !isEnded(cluster.phase),
    execute: async cluster => {
      const sure = await confirmed({
        title: trans.__('Detach %1?', cluster.name),
        body: trans.__(
          'It was not started here, and keeps running. It is only taken off this list.'
        ),
        refuse: trans.__('Keep it'),
        accept: trans.__('Detach')
      });
      if (sure) {
        await model.stop(cluster.id);
      }
    }
  });
  const again = async (
    like: ICluster,
    more: { replace?: boolean; trouble?: FieldErrors } = {}
  ): Promise<void> => {
    const cluster = await askNewCluster({ model, trans, like, ...more });
    if (cluster !== null) {
      options.reveal(cluster.id);
    }
  };
  addClusterCommand(options, CommandIDs.startAgain, {
    label: trans.__('Start another like it…'),
    caption: trans.__('Start a cluster like another one'),
    applies: () => true,
    execute: cluster => again(cluster)
  });
  addClusterCommand(options, CommandIDs.fix, {
    label: trans.__('Fix and retry…'),
    caption: trans.__('Change what made a cluster fail, and start it again'),
    applies: cluster => cluster.phase === 'failed',
    execute: async cluster => {
      await model.loadProfiles();
      const profile = model.profiles?.find(
        item => item.name === cluster.profile
      );
      const jobs = await model.api.jobs(cluster.id).catch(() => []);
      const states = [...jobs]
        .sort((a, b) => (a.ended ?? 0) - (b.ended ?? 0))
        .map(job => job.state);
      const path =
        profile === undefined ? '' : suspectOf(cluster, states, profile);
      const [told] = cluster.reason.split('\n');
      await again(cluster, { trouble: { [path]: told } });
    }
  });
  addClusterCommand(options, CommandIDs.resubmit, {
    label: trans.__('Edit and resubmit…'),
    caption: trans.__('Replace a waiting request with an edited one'),
    applies: isQueued,
    execute: cluster => again(cluster, { replace: true })
  });
  addClusterCommand(options, CommandIDs.forget, {
    label: trans.__('Remove cluster from history'),
    caption: trans.__('Delete the record and the logs of an ended cluster'),
    applies: cluster => isEnded(cluster.phase),
    execute: cluster => model.forget(cluster.id)
  });
}

/** Ask whether to end what cannot confirm its end, and do so. */
async function stopByForce(
  cluster: ICluster,
  why: string,
  { model, trans }: ICommandOptions
): Promise<void> {
  const sure = await confirmed({
    title: trans.__('Stop %1 by force?', cluster.name),
    body: trans.__(
      '%1 Its scheduler process is killed, its jobs are ended without it, and results in memory are lost.',
      why
    ),
    refuse: trans.__('Wait'),
    accept: trans.__('Stop by force'),
    warn: true
  });
  if (sure) {
    await model.stop(cluster.id, true);
  }
}

async function askNumber(
  cluster: ICluster,
  trans: TranslationBundle
): Promise<number | null> {
  const answer = await InputDialog.getNumber({
    title: trans.__('Scale %1', cluster.name),
    label: trans.__('How many %1?', cluster.unit),
    value: cluster.workers.asked,
    okLabel: trans.__('Scale')
  });
  return answer.value;
}

/** What stopping a cluster ends and loses. */
function consequences(
  cluster: ICluster,
  notebooks: string[],
  trans: TranslationBundle
): string {
  const words = [
    trans.__(
      'Its scheduler and %1 end; running tasks are cancelled and results in memory are lost.',
      amount(cluster.workers.ready, cluster.unit, trans)
    )
  ];
  if (cluster.memory_used > 0) {
    words.push(trans.__('Now in use: %1.', bytes(cluster.memory_used)));
  }
  if (cluster.clients > 0) {
    words.push(
      trans._n(
        '%1 client is connected.',
        '%1 clients are connected.',
        cluster.clients
      )
    );
  }
  if (notebooks.length > 0) {
    words.push(
      trans._n(
        'A notebook here uses it: %2.',
        'Notebooks here use it: %2.',
        notebooks.length,
        notebooks.join(', ')
      )
    );
  }
  return words.join(' ');
}
