/** Puts the code that connects to a cluster into a notebook, where the user sees it before it runs. */

import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import { NotebookActions } from '@jupyterlab/notebook';
import type { Kernel } from '@jupyterlab/services';
import type { CommandRegistry } from '@lumino/commands';

import type { IClientCode, ICluster, IEnvironment } from '../model/tokens';

type SharedCell = NonNullable<
  NotebookPanel['content']['model']
>['sharedModel']['cells'][number];

/** A kernel that computes answers later; its user wants the cell now. */
const PATIENCE_MS = 3000;
const HAS_PACKAGE =
  '__import__("importlib.util").util.find_spec("jupyter_gpucluster") is not None';

interface IInsertOptions {
  commands: CommandRegistry;
  notebooks: INotebookTracker;
  code: IClientCode;
  /** The form that was asked for; the one that suits the kernel where none was. */
  form?: keyof IClientCode;
  /** Finds the kernel of a notebook made for the purpose. */
  kernel: () => Promise<string>;
  /** Folder of a notebook made for the purpose. */
  directory: string;
  /** Whether to make a notebook although one is in use. */
  anew?: boolean;
}

/** Work for a first look at the plots, which needs no package beside Dask. */
const EXAMPLE = `

# An example: the task stream beside this notebook shows each task.
import time


def square(number):
    time.sleep(0.1)
    return number * number


futures = client.map(square, range(200))
sum(client.gather(futures))`;

/** The code to connect, followed by an example in place of the client's own output. */
export function withExample(code: IClientCode): IClientCode {
  const add = (text: string): string => text.replace(/\nclient$/, '') + EXAMPLE;
  return {
    connect: add(code.connect),
    magic: add(code.magic),
    dask: add(code.dask)
  };
}

/** Keep the Shift+Enter of a user who is faster than the kernel: Lab drops it until there is a kernel. */
function runLater(panel: NotebookPanel): void {
  const { content, node, sessionContext } = panel;
  const over = new AbortController();
  let wanted = false;
  // Lab itself listens at the document, which comes after the window.
  window.addEventListener(
    'keydown',
    event => {
      if (
        event.key === 'Enter' &&
        event.shiftKey &&
        node.contains(event.target as Node)
      ) {
        event.preventDefault();
        event.stopImmediatePropagation();
        wanted = true;
      }
    },
    { capture: true, signal: over.signal }
  );
  void sessionContext.ready.finally(() => {
    over.abort();
    if (wanted) {
      void NotebookActions.runAndAdvance(content, sessionContext);
    }
  });
}

/** Insert a code cell below the active one of the notebook in use, or of a new one; don't run it. */
export async function insertClientCode(
  options: IInsertOptions
): Promise<NotebookPanel> {
  const { commands, notebooks, code } = options;
  const current = notebooks.currentWidget;
  let panel = current;
  if (
    options.anew ||
    panel === null ||
    !panel.isVisible ||
    !speaksPython(panel)
  ) {
    panel = (await commands.execute('notebook:create-new', {
      cwd: options.directory,
      kernelName: await options.kernel()
    })) as NotebookPanel;
    runLater(panel);
  }
  await panel.context.ready;
  const cell = insertCell(panel, code[options.form ?? 'connect']);
  if (cell !== null && options.form === undefined) {
    // Without an answer the cell stays as it is.
    void suit(panel, cell, code).catch(() => undefined);
  }
  return panel;
}

/** Whether a kernel can import this package; null where it does not say in time. */
export async function hasPackage(
  kernel: Kernel.IKernelConnection
): Promise<boolean | null> {
  const future = kernel.requestExecute({
    code: '',
    silent: true,
    store_history: false,
    user_expressions: { has: HAS_PACKAGE }
  });
  const late = new Promise<null>(resolve => {
    window.setTimeout(() => resolve(null), PATIENCE_MS);
  });
  const answer = await Promise.race([future.done, late]);
  if (answer?.content.status !== 'ok') {
    return null;
  }
  const told = answer.content.user_expressions?.has as
    { data?: Record<string, string> } | undefined;
  const word = told?.data?.['text/plain'];
  return word === undefined ? null : word === 'True';
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

/** The open notebooks with a kernel and a cell that connects it to a cluster, by title. */
export function notebooksOf(
  cluster: ICluster,
  notebooks: INotebookTracker
): string[] {
  const { name, directory } = cluster;
  const marks = [
    `connect("${name}"`,
    `connect('${name}'`,
    `connect ${name}\n`,
    `cluster_name = "${name}"`,
    `${directory}/`
  ];
  const titles: string[] = [];
  notebooks.forEach(({ sessionContext, content, title }) => {
    const connects = content.model?.sharedModel.cells.some(
      ({ cell_type, source }) =>
        cell_type === 'code' && marks.some(mark => `${source}\n`.includes(mark))
    );
    if (connects && sessionContext.session?.kernel) {
      titles.push(title.label);
    }
  });
  return titles;
}

/** Make a cell that was dropped the active one and the only one selected. */
export function selectDropped(cell: string, notebooks: INotebookTracker): void {
  notebooks.forEach(({ content }) => {
    const index = content.widgets.findIndex(({ model }) => model.id === cell);
    // Lab 4.6 selects the cell above it, too. Another view of the notebook selects neither.
    if (index !== -1 && content.isSelectedOrActive(content.widgets[index])) {
      content.activeCellIndex = index;
      content.deselectAll();
      content.activate();
    }
  });
}

/** Insert the code, and tell its cell. */
function insertCell(panel: NotebookPanel, code: string): SharedCell | null {
  const notebook = panel.content;
  const model = notebook.model?.sharedModel;
  if (model === undefined) {
    return null;
  }
  const first = model.cells.length === 1 && model.cells[0].source === '';
  const empty = first && model.cells[0].cell_type === 'code';
  const index = empty ? 0 : notebook.activeCellIndex + 1;
  if (empty) {
    model.cells[0].setSource(code);
  } else {
    model.insertCell(index, { cell_type: 'code', source: code });
    notebook.activeCellIndex = index;
  }
  notebook.deselectAll();
  notebook.activate();
  return model.cells[index];
}

/** A kernel that lacks this package can still use Dask's own words, unless the cell was changed. */
async function suit(
  panel: NotebookPanel,
  cell: SharedCell,
  code: IClientCode
): Promise<void> {
  await panel.sessionContext.ready;
  const kernel = panel.sessionContext.session?.kernel;
  if (kernel && (await hasPackage(kernel)) === false) {
    if (cell.source === code.connect) {
      cell.setSource(code.dask);
    }
  }
}

/** Whether the kernel is, or will be, a Python one; a notebook without a kernel may still get one. */
function speaksPython(panel: NotebookPanel): boolean {
  const language = panel.content.model?.defaultKernelLanguage ?? '';
  return language === '' || language === 'python';
}
