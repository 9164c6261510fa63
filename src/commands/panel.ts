/** Commands that need no cluster: show the panel, refresh it, start a cluster. */

import { addIcon, refreshIcon } from '@jupyterlab/ui-components';
import { UUID } from '@lumino/coreutils';

import { clusterIcon } from '../ui/icons';
import { preferredEnvironment } from '../start/draft';
import { askNewCluster } from '../start/newCluster';
import { askSetUp } from '../start/setUp';
import { insertClientCode, withExample } from '../notebook/clientCode';
import type { ICluster } from '../model/tokens';
import { profileHere, triedWords, triedWorkers } from '../start/tryout';
import { CommandIDs } from '../model/commandIds';
import type { ICommandOptions } from './register';
import { guarded, schema, stringOf, text } from './register';
import { clusterWords } from '../model/words';

export function addPanelCommands(options: ICommandOptions): void {
  const { app, model, trans } = options;
  app.commands.addCommand(CommandIDs.showPanel, {
    label: args => {
      const cluster = model.cluster(stringOf(args, 'cluster') ?? '');
      return cluster === undefined
        ? trans.__('Show GPU clusters')
        : clusterWords(cluster, trans);
    },
    caption: trans.__('Show the panel with clusters and profiles'),
    icon: clusterIcon,
    describedBy: {
      args: schema({
        cluster: text(trans.__('Id of the cluster whose card gets the focus.'))
      })
    },
    execute: args => {
      const cluster = stringOf(args, 'cluster');
      if (cluster === undefined) {
        options.showPanel();
      } else {
        options.reveal(cluster);
      }
    }
  });
  app.commands.addCommand(CommandIDs.refresh, {
    label: trans.__('Refresh clusters and profiles'),
    caption: trans.__('Ask the server for clusters and profiles again'),
    icon: refreshIcon,
    describedBy: { args: schema({}) },
    execute: async () => {
      await Promise.all([model.refresh(), model.loadProfiles()]);
    }
  });
  app.commands.addCommand(CommandIDs.create, {
    label: args =>
      args.isLauncher
        ? trans.__('New GPU cluster')
        : trans.__('New GPU cluster…'),
    caption: trans.__('Start a Dask cluster from a profile'),
    icon: args => (args.isLauncher ? clusterIcon : addIcon),
    describedBy: {
      args: schema({
        profile: text(trans.__('Name of the profile to offer first.'))
      })
    },
    execute: async args => {
      const cluster = await askNewCluster({
        model,
        trans,
        profile: stringOf(args, 'profile'),
        kernel: app.serviceManager.kernelspecs.specs?.default
      });
      if (cluster !== null) {
        options.reveal(cluster.id);
      }
    }
  });
  app.commands.addCommand(CommandIDs.setUp, {
    label: trans.__('Set up a batch system…'),
    caption: trans.__(
      'Write a profile from what the batch system of this host reports'
    ),
    describedBy: { args: schema({}) },
    execute: async () => {
      const kernel = app.serviceManager.kernelspecs.specs?.default;
      const profile = await askSetUp({ model, trans, kernel });
      if (profile !== null) {
        await model.loadProfiles();
        await app.commands.execute(CommandIDs.create, { profile });
      }
    }
  });
  app.commands.addCommand(CommandIDs.tryHere, {
    label: () => {
      const profile = profileHere(model);
      return profile === undefined
        ? trans.__('Try on this machine')
        : trans.__('Try on this machine (%1)', triedWords(profile, trans));
    },
    caption: trans.__(
      'Start a small cluster on the machine of Jupyter, with an example to run'
    ),
    describedBy: { args: schema({}) },
    isEnabled: () => profileHere(model) !== undefined,
    execute: guarded(options, async () => {
      const profile = profileHere(model);
      if (profile === undefined) {
        return;
      }
      await model.loadEnvironments();
      const kernel = preferredEnvironment(model.environments ?? [], profile, [
        app.serviceManager.kernelspecs.specs?.default ?? ''
      ]);
      const cluster = await model.start({
        profile: profile.name,
        target: { workers: triedWorkers(profile) },
        options: {},
        ...(kernel === '' ? {} : { kernel }),
        request_id: UUID.uuid4()
      });
      options.reveal(cluster.id);
      await openExample(options, cluster, kernel);
    })
  });
}

/** Open a notebook that is ready to run, beside the plot that shows its tasks. */
async function openExample(
  options: ICommandOptions,
  cluster: ICluster,
  kernel: string
): Promise<void> {
  const { app, model, notebooks, tabs } = options;
  if (notebooks === null) {
    return;
  }
  const panel = await insertClientCode({
    commands: app.commands,
    notebooks,
    code: withExample(await model.api.clientCode(cluster.id)),
    kernel: () => Promise.resolve(kernel),
    directory: options.directory(),
    anew: true
  });
  options.remember(panel, cluster.id);
  tabs.openDashboard(cluster.id, 'individual-task-stream');
  app.shell.activateById(panel.id);
}
