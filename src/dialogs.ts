/** A dialog whose content has keys of its own. */

import { Dialog } from '@jupyterlab/apputils';

const OWN_ENTER =
  'summary, select, input[type="search"], .jp-Dialog-body button';

/** Leaves Enter to the parts that use it; Lab's dialog takes it for its default button wherever it is pressed. */
export class KeyDialog<T> extends Dialog<T> {
  override handleEvent(event: Event): void {
    const own =
      event.type === 'keydown' &&
      (event as KeyboardEvent).key === 'Enter' &&
      event.target instanceof HTMLElement &&
      event.target.closest(OWN_ENTER) !== null;
    if (!own) {
      super.handleEvent(event);
    }
  }
}
