/** Commands that use a cluster as it is: see its dashboard, connect to it, read its log. */

import { Clipboard, Dialog, Notification } from '@jupyterlab/apputils';
import { ReactWidget } from '@jupyterlab/ui-components';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';
import * as React from 'react';

import { insertClientCode, kernelFor } from '../notebook/clientCode';
import { plotTitle, WHOLE_DASHBOARD } from '../dashboard/plots';
import { KeyDialog } from '../ui/dialogs';
import { dashboardIcon } from '../ui/icons';
import type { RecipeForm } from '../notebook/recipe';
import { recipeOf } from '../notebook/recipe';
import type { IClientCode } from '../model/tokens';
import { LogView } from '../ui/log';
import { isConnectable, isEnded } from '../model/words';
import { CommandIDs } from '../model/commandIds';
import type { ICommandOptions } from './register';
import { addClusterCommand, stringOf, text } from './register';

const COPIED_MS = 3000;

export function addUseCommands(options: ICommandOptions): void {
  const { app, model, notebooks, trans } = options;
  addClusterCommand(options, CommandIDs.openDashboard, {
    label: args =>
      typeof args.plot === 'string'
        ? plotTitle(args.plot, trans)
        : trans.__('Open dashboard'),
    caption: trans.__('Open the Dask dashboard of a cluster'),
    icon: dashboardIcon,
    args: { plot: text(trans.__('Page of the dashboard, such as "status".')) },
    applies: cluster => cluster.dashboard !== null,
    execute: (cluster, args) => {
      options.active.id = cluster.id;
      options.tabs.openDashboard(cluster.id, plotOf(args));
    },
    // A restored tab says itself that its cluster is gone.
    otherwise: (id, args) => {
      options.tabs.openDashboard(id, plotOf(args));
    }
  });
  addClusterCommand(options, CommandIDs.connect, {
    label: args =>
      args.form === 'dask'
        ? trans.__('Connect with plain Dask')
        : args.form === 'magic'
          ? trans.__('Insert %gpucluster code')
          : trans.__('Connect notebook'),
    caption: trans.__('Insert the code that connects a notebook to a cluster'),
    args: {
      form: {
        type: 'string',
        enum: ['connect', 'magic', 'dask'],
        description: trans.__('Form of the code.')
      }
    },
    applies: cluster => notebooks !== null && isConnectable(cluster),
    execute: async (cluster, args) => {
      if (notebooks === null) {
        return;
      }
      const code = await model.api.clientCode(cluster.id);
      const panel = await insertClientCode({
        commands: app.commands,
        notebooks,
        code,
        form: stringOf(args, 'form') as keyof IClientCode | undefined,
        kernel: async () => {
          if (model.environments === null) {
            await model.loadEnvironments();
          }
          return kernelFor(
            cluster,
            model.environments ?? [],
            app.serviceManager.kernelspecs.specs?.default ?? ''
          );
        },
        directory: stringOf(args, 'cwd') ?? options.directory()
      });
      options.active.id = cluster.id;
      options.remember(panel, cluster.id);
    }
  });
  addClusterCommand(options, CommandIDs.showLog, {
    label: trans.__('Show log'),
    caption: trans.__('Show the newest lines of a cluster’s logs'),
    applies: () => true,
    execute: async cluster => {
      const load = (): Promise<string> => model.api.logs(cluster.id, '');
      const dialog = new KeyDialog({
        title: trans.__('Log of %1', cluster.name),
        body: ReactWidget.create(
          React.createElement(LogView, {
            load,
            live: !isEnded(cluster.phase),
            trans
          })
        ),
        buttons: [Dialog.okButton({ label: trans.__('Close') })]
      });
      dialog.addClass('jp-gpucluster-LogDialog');
      await dialog.launch();
    }
  });
  addClusterCommand(options, CommandIDs.copyRecipe, {
    label: args =>
      args.form === 'python'
        ? trans.__('Copy as Python')
        : args.form === 'profile'
          ? trans.__('Copy as profile')
          : trans.__('Copy as command'),
    caption: trans.__('Copy code that starts a cluster like this one'),
    args: {
      form: {
        type: 'string',
        enum: ['command', 'python', 'profile'],
        description: trans.__('Form of the text; a shell command by default.')
      }
    },
    applies: () => true,
    execute: (cluster, args) => {
      const form = (stringOf(args, 'form') ?? 'command') as RecipeForm;
      Clipboard.copyToSystem(recipeOf(cluster, form));
      Notification.emit(
        trans.__('Copied: code that starts a cluster like %1.', cluster.name),
        'success',
        { autoClose: COPIED_MS }
      );
    }
  });
}

function plotOf(args: ReadonlyPartialJSONObject): string {
  return stringOf(args, 'plot') ?? WHOLE_DASHBOARD;
}
