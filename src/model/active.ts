/** The cluster that the user works with: what was touched, started or connected last. */

import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';

export class ActiveCluster {
  /** Its id; '' before there was one. */
  get id(): string {
    return this._id;
  }

  set id(id: string) {
    if (id !== this._id) {
      this._id = id;
      this._changed.emit(id);
    }
  }

  get changed(): ISignal<this, string> {
    return this._changed;
  }

  private readonly _changed = new Signal<this, string>(this);
  private _id = '';
}
