import type { INotebookTracker } from '@jupyterlab/notebook';
import { NotebookActions } from '@jupyterlab/notebook';
import { CommandRegistry } from '@lumino/commands';
import { beforeEach, describe, expect, it, vi } from 'vitest';

import {
  insertClientCode,
  kernelFor,
  notebooksOf,
  selectDropped,
  withExample
} from '../clientCode';
import { aCluster, anEnvironment } from '../../__tests__/fakes';

interface ICell {
  cell_type: string;
  source: string;
  setSource?: (text: string) => void;
}

/** As much of a notebook's panel as inserting a cell touches. */
function aPanel(sources: string[], language = 'python') {
  const cells: ICell[] = sources.map(source => {
    const cell: ICell = {
      cell_type: 'code',
      source,
      setSource: text => {
        cell.source = text;
      }
    };
    return cell;
  });
  const node = document.body.appendChild(document.createElement('div'));
  return {
    cells,
    node,
    isVisible: true,
    sessionContext: {
      ready: Promise.resolve(),
      session: { kernel: { requestExecute } }
    },
    context: { ready: Promise.resolve() },
    content: {
      activeCellIndex: 0,
      deselectAll: vi.fn(),
      activate: vi.fn(),
      model: {
        defaultKernelLanguage: language,
        sharedModel: {
          cells,
          insertCell: (index: number, cell: ICell) =>
            cells.splice(index, 0, cell)
        }
      }
    }
  };
}

let commands: CommandRegistry;
const created = vi.fn();
const run = vi.spyOn(NotebookActions, 'runAndAdvance').mockResolvedValue(true);
/** Whether the kernel says that it has this package. */
let has = 'True';

function requestExecute(): object {
  const user_expressions = { has: { data: { 'text/plain': has } } };
  return {
    done: Promise.resolve({ content: { status: 'ok', user_expressions } })
  };
}

beforeEach(() => {
  commands = new CommandRegistry();
  commands.addCommand('notebook:create-new', { execute: created });
  created.mockReset();
});

async function insert(current: ReturnType<typeof aPanel> | null) {
  await insertClientCode({
    commands,
    notebooks: { currentWidget: current } as unknown as INotebookTracker,
    code: { connect: 'connect()', magic: '%connect', dask: 'Client()' },
    kernel: () => Promise.resolve('python3'),
    directory: 'work'
  });
}

it('a dropped cell is alone selected, in the view that it was dropped on', () => {
  const view = (selected: boolean) => ({
    content: {
      activeCellIndex: 0,
      widgets: ['above', 'dropped'].map(id => ({ model: { id } })),
      isSelectedOrActive: () => selected,
      deselectAll: vi.fn(),
      activate: vi.fn()
    }
  });
  const views = [view(false), view(true)];
  selectDropped('dropped', {
    forEach: views.forEach.bind(views)
  } as unknown as INotebookTracker);
  expect(views.map(({ content }) => content.activeCellIndex)).toEqual([0, 1]);
  expect(views[0].content.deselectAll).not.toHaveBeenCalled();
  expect(views[1].content.deselectAll).toHaveBeenCalledOnce();
  expect(views[1].content.activate).toHaveBeenCalledOnce();
});

describe('client code', () => {
  it('goes into a cell of its own below the active one', async () => {
    const panel = aPanel(['a', 'b']);
    await insert(panel);
    expect(panel.cells.map(cell => cell.source)).toEqual([
      'a',
      'connect()',
      'b'
    ]);
    expect(panel.content.activeCellIndex).toBe(1);
    expect(panel.content.activate).toHaveBeenCalled();
    expect(created).not.toHaveBeenCalled();
  });

  it('fills the one empty cell of a notebook that was just made', async () => {
    const panel = aPanel(['']);
    created.mockResolvedValue(panel);
    await insert(null);
    expect(created).toHaveBeenCalledWith({
      cwd: 'work',
      kernelName: 'python3'
    });
    expect(panel.cells.map(cell => cell.source)).toEqual(['connect()']);
  });

  it('keeps the Shift+Enter of a user who is faster than the kernel', async () => {
    const panel = aPanel(['']);
    let ready = (): void => undefined;
    panel.sessionContext.ready = new Promise<void>(resolve => {
      ready = resolve;
    });
    created.mockResolvedValue(panel);
    await insert(null);
    const key = (shiftKey: boolean): KeyboardEvent =>
      new KeyboardEvent('keydown', {
        key: 'Enter',
        shiftKey,
        bubbles: true,
        cancelable: true
      });
    const [plain, early, late] = [key(false), key(true), key(true)];
    panel.node.dispatchEvent(plain);
    panel.node.dispatchEvent(early);
    expect([plain, early].map(event => event.defaultPrevented)).toEqual([
      false,
      true
    ]);
    expect(run).not.toHaveBeenCalled();
    ready();
    await vi.waitFor(() =>
      expect(run).toHaveBeenCalledExactlyOnceWith(
        panel.content,
        panel.sessionContext
      )
    );
    panel.node.dispatchEvent(late);
    expect(late.defaultPrevented).toBe(false);
  });

  it('with an example still shows what it computes last', () => {
    const { connect } = withExample({
      connect: 'client = connect("a")\nclient',
      magic: '',
      dask: ''
    });
    expect(connect).toMatch(/^client = connect\("a"\)\n\n# An example/);
    expect(connect).toMatch(/sum\(client\.gather\(futures\)\)$/);
  });

  it('turns into plain Dask where the kernel lacks the package', async () => {
    has = 'False';
    const panel = aPanel(['']);
    await insert(panel);
    await vi.waitFor(() => expect(panel.cells[0].source).toBe('Client()'));
    has = 'True';
  });

  it('never goes into a notebook of another language', async () => {
    const other = aPanel(['x <- 1'], 'R');
    created.mockResolvedValue(aPanel(['']));
    await insert(other);
    expect(other.cells).toHaveLength(1);
    expect(created).toHaveBeenCalled();
  });
});

describe('the kernel for a new notebook', () => {
  it('is the one that runs in the cluster’s environment', () => {
    const own = anEnvironment({ name: 'own', python: '/opt/own/python' });
    const cluster = aCluster({ python: '/opt/own/python' });
    expect(kernelFor(cluster, [anEnvironment(), own], 'python3')).toBe('own');
    expect(kernelFor(cluster, [anEnvironment()], 'python3')).toBe('python3');
  });
});

describe('the notebooks of a cluster', () => {
  function named(label: string, ...sources: string[]) {
    return { ...aPanel(sources), title: { label } };
  }

  it('are those with a kernel and a cell that connects it', () => {
    const idle = named('idle.ipynb', 'connect("quiet-fox")');
    const panels = [
      named('own.ipynb', 'x = 1', 'client = connect("quiet-fox")\nclient'),
      named('magic.ipynb', '%gpucluster connect quiet-fox\nclient'),
      named('dask.ipynb', 'Client(scheduler_file="/home/ada/clusters/c1/s")'),
      named('other.ipynb', '%gpucluster connect quiet-fox-2', '"quiet-fox"'),
      {
        ...idle,
        sessionContext: { ...idle.sessionContext, session: null }
      }
    ];
    const notebooks = panels as unknown as INotebookTracker;
    expect(notebooksOf(aCluster(), notebooks)).toEqual([
      'own.ipynb',
      'magic.ipynb',
      'dask.ipynb'
    ]);
  });
});
