/** A cluster taken by the hand: dropped on a notebook it becomes a cell that connects to it. */

import { MimeData, UUID } from '@lumino/coreutils';
import { Drag } from '@lumino/dragdrop';

const CELLS_MIME = 'application/vnd.jupyter.cells';
/** What the hand may shake before a press becomes a drag. */
const THRESHOLD_PX = 5;

interface IDragOptions {
  /** Where the press began. */
  event: PointerEvent;
  /** The card's name in words, shown beside the pointer. */
  label: string;
  /** Fetches the code of the cell. */
  code: () => Promise<string>;
  /** Told the id of the cell, once a notebook may have taken it. */
  onDropped: (cell: string) => void;
}

/** Begin a drag as soon as the pointer has left its place with the button held. */
export function dragCode(options: IDragOptions): void {
  const { event } = options;
  const controller = new AbortController();
  const { signal } = controller;
  const release = (): void => controller.abort();
  let dragged = false;
  const moved = (move: PointerEvent): void => {
    const far = Math.max(
      Math.abs(move.clientX - event.clientX),
      Math.abs(move.clientY - event.clientY)
    );
    if (far >= THRESHOLD_PX && !dragged) {
      dragged = true;
      void drag(options, move).finally(release);
    }
  };
  document.addEventListener('pointermove', moved, { signal });
  document.addEventListener('pointerup', release, { signal });
  // The browser would select all text between card and pointer, and notebooks the cells in it.
  // To prevent the press itself would keep the focus from the card.
  document.addEventListener('selectstart', prevent, { signal });
  // The second press of a double click selects the name.
  document.addEventListener(
    'mousedown',
    press => {
      if (press.detail > 1) {
        release();
      }
    },
    { signal }
  );
}

function prevent(event: Event): void {
  event.preventDefault();
}

async function drag(options: IDragOptions, at: PointerEvent): Promise<void> {
  let code = '';
  const fetched = options.code().then(
    text => {
      code = text;
    },
    () => undefined
  );
  const id = UUID.uuid4();
  const mimeData = new MimeData();
  // Asked for at the drop, when the server has long answered.
  mimeData.setData(CELLS_MIME, [
    {
      cell_type: 'code',
      id,
      execution_count: null,
      metadata: {},
      outputs: [],
      get source(): string {
        return code;
      }
    }
  ]);
  mimeData.setData('text/plain', options.label);
  const image = document.createElement('div');
  image.className = 'jp-gpucluster-DragImage';
  image.textContent = options.label;
  const running = new Drag({
    mimeData,
    dragImage: image,
    supportedActions: 'copy',
    proposedAction: 'copy'
  });
  await Promise.all([
    running.start(at.clientX, at.clientY).then(() => options.onDropped(id)),
    fetched
  ]);
  running.dispose();
}
