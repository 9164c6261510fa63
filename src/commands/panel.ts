/** Commands that need no cluster: show the panel, refresh it, start a cluster, open a notebook. */

import { addIcon, notebookIcon, refreshIcon } from '@jupyterlab/ui-components';

import { clusterIcon } from '../icons';
import { askNewCluster } from '../newCluster';
import { CommandIDs } from './ids';
import type { ICommandOptions } from './register';
import { guarded, schema, stringOf, text } from './register';

export function addPanelCommands(options: ICommandOptions): void {
  const { app, model, trans } = options;
  app.commands.addCommand(CommandIDs.showPanel, {
    label: trans.__('Show GPU clusters'),
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
  app.commands.addCommand(CommandIDs.openNotebook, {
    label: trans.__('Open benchmark notebook'),
    caption: trans.__('Open a copy of a notebook that measures a cluster'),
    icon: notebookIcon,
    describedBy: {
      args: schema({ cwd: text(trans.__('Folder for the copy.')) })
    },
    execute: guarded(options, async args => {
      const [notebook] = await model.notebooks();
      if (notebook === undefined) {
        throw new Error(trans.__('No notebook comes with this installation.'));
      }
      const path = await model.copyNotebook(
        notebook.name,
        stringOf(args, 'cwd') ?? options.directory()
      );
      await app.commands.execute('docmanager:open', { path });
    })
  });
}
