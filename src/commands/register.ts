/** What all commands share: their options, their arguments, how a cluster is chosen and a failure told. */

import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import type {
  ReadonlyJSONObject,
  ReadonlyPartialJSONObject
} from '@lumino/coreutils';

import type { ActiveCluster } from '../model/active';
import { chooseItem } from '../ui/dialogs';
import { showFailure } from '../ui/failure';
import type { Preferences } from '../model/preferences';
import type { Tabs } from '../dashboard/tabs';
import type { ICluster, IClustersModel } from '../model/tokens';

export interface ICommandOptions {
  app: JupyterFrontEnd;
  model: IClustersModel;
  /** Null where there are no notebooks. */
  notebooks: INotebookTracker | null;
  showPanel: () => void;
  /** Show the panel with the focus on a cluster's card. */
  reveal: (cluster: string) => void;
  /** Folder in which the user works. */
  directory: () => string;
  tabs: Tabs;
  active: ActiveCluster;
  preferences: Preferences;
  /** Notes that a notebook uses a cluster. */
  remember: (panel: NotebookPanel, cluster: string) => void;
  trans: TranslationBundle;
}

type Args = ReadonlyPartialJSONObject;

interface IClusterCommand {
  label: string | ((args: Args) => string);
  caption: string;
  icon?: CommandRegistry.ICommandOptions['icon'];
  args?: ReadonlyJSONObject;
  applies: (cluster: ICluster) => boolean;
  execute: (cluster: ICluster, args: Args) => void | Promise<void>;
  /** What to do about an id that stands for no cluster the command applies to. */
  otherwise?: (id: string, args: Args) => void;
}

/** Add a command for the cluster that `args.cluster` names, or else the user picks. */
export function addClusterCommand(
  options: ICommandOptions,
  id: string,
  command: IClusterCommand
): void {
  const { app, model, trans } = options;
  const candidates = (args: Args): ICluster[] => {
    const wanted = stringOf(args, 'cluster');
    return model.clusters.filter(
      cluster =>
        (wanted === undefined || cluster.id === wanted) &&
        command.applies(cluster)
    );
  };
  app.commands.addCommand(id, {
    label: command.label,
    caption: command.caption,
    icon: command.icon,
    describedBy: {
      args: schema({
        cluster: text(
          trans.__('Id of the cluster; a dialog asks if it is missing.')
        ),
        ...command.args
      })
    },
    isEnabled: args => candidates(args).length > 0,
    execute: guarded(options, async args => {
      const wanted = stringOf(args, 'cluster');
      if (wanted !== undefined && candidates(args).length === 0) {
        await model.refresh();
      }
      const cluster = await pick(candidates(args), trans);
      if (cluster !== undefined) {
        await command.execute(cluster, args);
      } else if (wanted !== undefined) {
        command.otherwise?.(wanted, args);
      }
    })
  });
}

/** Run, and tell the user what went wrong. */
export function guarded(
  options: ICommandOptions,
  run: (args: Args) => Promise<void>
): (args: Args) => Promise<void> {
  return async args => {
    try {
      await run(args);
    } catch (error) {
      await showFailure(error, options.trans);
    }
  };
}

async function pick(
  clusters: ICluster[],
  trans: TranslationBundle
): Promise<ICluster | undefined> {
  if (clusters.length < 2) {
    return clusters[0];
  }
  const names = clusters.map(cluster => cluster.name);
  const labels = clusters.map(({ name, id }) =>
    names.indexOf(name) === names.lastIndexOf(name)
      ? name
      : trans.__('%1 (%2)', name, id)
  );
  const chosen = await chooseItem({
    title: trans.__('Which cluster?'),
    items: labels
  });
  return chosen === null ? undefined : clusters[chosen];
}

/** The JSON schema of a command's arguments. */
export function schema(properties: ReadonlyJSONObject): ReadonlyJSONObject {
  return { type: 'object', properties };
}

/** The schema of an argument that is a text. */
export function text(description: string): ReadonlyJSONObject {
  return { type: 'string', description };
}

/** An argument that is a text; undefined where it is missing or something else. */
export function stringOf(args: Args, key: string): string | undefined {
  const value = args[key];
  return typeof value === 'string' ? value : undefined;
}
