/** Commands that open a copy of a notebook that measures a cluster. */

import { notebookIcon } from '@jupyterlab/ui-components';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';

import { chooseItem } from '../ui/dialogs';
import type { ICluster } from '../model/tokens';
import { isConnectable, isOurs } from '../model/words';
import { CommandIDs } from '../model/commandIds';
import type { ICommandOptions } from './register';
import { addClusterCommand, guarded, schema, stringOf, text } from './register';

export function addBenchmarkCommands(options: ICommandOptions): void {
  const { app, trans } = options;
  const args = {
    notebook: text(
      trans.__('Name of the notebook; a dialog asks if it is missing.')
    ),
    cwd: text(trans.__('Folder for the copy.'))
  };
  app.commands.addCommand(CommandIDs.openNotebook, {
    label: trans.__('Open benchmark notebook…'),
    caption: trans.__('Open a copy of a notebook that measures a cluster'),
    icon: notebookIcon,
    describedBy: { args: schema(args) },
    execute: guarded(options, given => openNotebook(options, given))
  });
  addClusterCommand(options, CommandIDs.benchmark, {
    label: trans.__('Benchmark cluster…'),
    caption: trans.__('Open a notebook that measures a running cluster'),
    icon: notebookIcon,
    args,
    applies: cluster => isOurs(cluster) && isConnectable(cluster),
    execute: (cluster, given) => openNotebook(options, given, cluster)
  });
}

/** Copy one of the notebooks to where the user works, and open it. */
async function openNotebook(
  options: ICommandOptions,
  args: ReadonlyPartialJSONObject,
  cluster?: ICluster
): Promise<void> {
  const { app, model } = options;
  const name = stringOf(args, 'notebook') ?? (await chooseNotebook(options));
  if (name === null) {
    return;
  }
  const kernel = cluster === undefined ? null : await kernelOf(cluster, model);
  const path = await model.api.copyNotebook(name, {
    directory: stringOf(args, 'cwd') ?? options.directory(),
    ...(cluster === undefined ? {} : { cluster: cluster.id })
  });
  await app.commands.execute('docmanager:open', {
    path,
    ...(kernel === null ? {} : { kernel: { name: kernel } })
  });
  if (cluster !== undefined) {
    options.active.id = cluster.id;
  }
}

/** Ask where there are several; null where the user goes no further. */
async function chooseNotebook(
  options: ICommandOptions
): Promise<string | null> {
  const { model, trans } = options;
  const notebooks = await model.api.notebooks();
  if (notebooks.length === 0) {
    throw new Error(trans.__('No notebook comes with this installation.'));
  }
  if (notebooks.length === 1) {
    return notebooks[0].name;
  }
  const chosen = await chooseItem({
    title: trans.__('Which benchmark?'),
    items: notebooks.map(notebook => notebook.title),
    okLabel: trans.__('Open notebook')
  });
  return chosen === null ? null : notebooks[chosen].name;
}

/** The kernel beside a cluster's workers, if it can run the notebook; else null. */
async function kernelOf(
  cluster: ICluster,
  model: ICommandOptions['model']
): Promise<string | null> {
  if (model.environments === null) {
    await model.loadEnvironments();
  }
  const same = model.environments?.find(
    ({ python, versions }) =>
      python === cluster.python && 'jupyter_gpucluster' in versions
  );
  return same?.name ?? null;
}
