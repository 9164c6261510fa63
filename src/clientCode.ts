/** Puts the code that connects to a cluster into a notebook, where the user sees it before it runs. */

import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import type { CommandRegistry } from '@lumino/commands';

import type { ICluster, IEnvironment } from './tokens';

interface IInsertOptions {
  commands: CommandRegistry;
  notebooks: INotebookTracker;
  code: string;
  /** Finds the kernel of a notebook made for the purpose. */
  kernel: () => Promise<string>;
  /** Folder of a notebook made for the purpose. */
  directory: string;
}

/** Insert a code cell below the active one of the notebook in use, or of a new one; don't run it. */
export async function insertClientCode(options: IInsertOptions): Promise<void> {
  const { commands, notebooks } = options;
  const current = notebooks.currentWidget;
  const panel =
    current !== null && current.isVisible && speaksPython(current)
      ? current
      : ((await commands.execute('notebook:create-new', {
          cwd: options.directory,
          kernelName: await options.kernel()
        })) as NotebookPanel);
  await panel.context.ready;
  insertCell(panel, options.code);
}

/** The kernel that runs in a cluster's environment, else Jupyter's default one. */
export function kernelFor(
  cluster: ICluster,
  environments: ReadonlyArray<IEnvironment>,
  fallback: string
): string {
  const same = environments.find(
    environment => environment.python === cluster.python
  );
  return same?.name ?? fallback;
}

function insertCell(panel: NotebookPanel, code: string): void {
  const notebook = panel.content;
  const model = notebook.model?.sharedModel;
  if (model === undefined) {
    return;
  }
  const active = notebook.activeCellIndex;
  const first = model.cells.length === 1 && model.cells[0].source === '';
  if (first && model.cells[0].cell_type === 'code') {
    model.cells[0].setSource(code);
  } else {
    model.insertCell(active + 1, { cell_type: 'code', source: code });
    notebook.activeCellIndex = active + 1;
  }
  notebook.deselectAll();
  notebook.activate();
}

/** Whether the kernel is, or will be, a Python one; a notebook without a kernel may still get one. */
function speaksPython(panel: NotebookPanel): boolean {
  const language = panel.content.model?.defaultKernelLanguage ?? '';
  return language === '' || language === 'python';
}
