/** Hints on the server's event stream that a cluster has changed, and whether they can be relied on. */

import type { Event } from '@jupyterlab/services';
import type { IDisposable } from '@lumino/disposable';
import type { IStream } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';

import type { ICluster } from './tokens';

const SCHEMA_ID =
  'https://events.jupyter.org/jupyter_gpucluster/cluster_changed/v1';

/**
 * Nobody tells a page whether it may listen, and a socket can be lost in silence. So hints are
 * trusted from the first one on, until a change is seen that none has told of.
 */
export class Hints implements IDisposable {
  /** @param tell - what to do about a hint */
  constructor(
    private readonly _events: IStream<unknown, Event.Emission> | undefined,
    private readonly _tell: (id: string, revision: number) => void
  ) {
    _events?.connect(this._hear, this);
  }

  /** Whether hints arrive. */
  get arrive(): boolean {
    return this._arrive;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    this._isDisposed = true;
    this._events?.disconnect(this._hear, this);
    Signal.clearData(this);
  }

  /** Find out whether each change was told of. */
  compare(
    before: ReadonlyArray<ICluster>,
    after: ReadonlyArray<ICluster>
  ): void {
    for (const { id, revision } of after) {
      const known = before.find(cluster => cluster.id === id)?.revision;
      const told = this._told.get(id) ?? -1;
      if (known !== undefined && revision > known && told <= known) {
        this._arrive = false;
      }
    }
  }

  private _hear(_: unknown, event: Event.Emission): void {
    const { schema_id: schema, id, revision } = event;
    if (
      schema === SCHEMA_ID &&
      typeof id === 'string' &&
      typeof revision === 'number'
    ) {
      this._arrive = true;
      this._told.set(id, revision);
      this._tell(id, revision);
    }
  }

  private readonly _told = new Map<string, number>();
  private _arrive = false;
  private _isDisposed = false;
}
