/** Dialogs that do what Lab's own leave out. */

import { Dialog, showDialog } from '@jupyterlab/apputils';
import { Widget } from '@lumino/widgets';

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

/** Ask for one of several by its index, null where the user goes no further; Lab's own list has no name for screen readers. */
export async function chooseItem(options: {
  title: string;
  items: string[];
  okLabel?: string;
}): Promise<number | null> {
  const answer = await showDialog({
    title: options.title,
    body: new ItemList(options.title, options.items),
    buttons: [
      Dialog.cancelButton(),
      Dialog.okButton({ label: options.okLabel })
    ],
    focusNodeSelector: 'select'
  });
  return answer.button.accept ? answer.value : null;
}

/** Ask whether to do something; what cannot be undone is not the default. */
export async function confirmed(options: {
  title: string;
  body: string;
  refuse: string;
  accept: string;
  /** Whether it loses something. */
  warn?: boolean;
}): Promise<boolean> {
  const { title, body, warn } = options;
  const label = options.accept;
  const answer = await showDialog({
    title,
    body,
    buttons: [
      Dialog.cancelButton({ label: options.refuse }),
      warn ? Dialog.warnButton({ label }) : Dialog.okButton({ label })
    ],
    defaultButton: warn ? 0 : 1
  });
  return answer.button.accept;
}

class ItemList extends Widget implements Dialog.IBodyWidget<number> {
  constructor(name: string, items: string[]) {
    super();
    this._select.className = 'jp-mod-styled';
    this._select.setAttribute('aria-label', name);
    this._select.append(...items.map(item => new Option(item, item)));
    this.node.append(this._select);
  }

  getValue(): number {
    return this._select.selectedIndex;
  }

  private readonly _select = document.createElement('select');
}
