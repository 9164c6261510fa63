/** What happened to each cluster while nobody looked at this page. */

import type { IStateDB } from '@jupyterlab/statedb';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';

import type { ICluster, IClusterEvent, IClustersModel } from '../model/tokens';
import { moment } from '../model/words';

const STATE_KEY = 'jupyter-gpucluster:seen';
/** A look away that is shorter needs no account. */
const AWAY_SECONDS = 600;

/** What was seen of a cluster last. */
interface ISeen {
  revision: number;
  /** Epoch seconds. */
  time: number;
  /** Time of the loss that was put aside last. */
  loss?: number;
}

type Seen = Record<string, ISeen>;

interface IAbsenceOptions {
  model: IClustersModel;
  /** Null where nothing is remembered from page to page. */
  state: IStateDB | null;
  trans: TranslationBundle;
}

/** Compares what is there with what was seen last, and remembers what is seen. */
export class Absence {
  constructor(private readonly _options: IAbsenceOptions) {
    void this._begin();
  }

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** What happened to a cluster, in words; '' for nothing. */
  news(cluster: string): string {
    return this._news.get(cluster) ?? '';
  }

  dismiss(cluster: string): void {
    if (this._news.delete(cluster)) {
      this._changed.emit();
    }
  }

  isLossDismissed({ id, loss }: ICluster): boolean {
    return Boolean(loss && loss.time <= (this._seen[id]?.loss ?? 0));
  }

  /** Put the last loss of a cluster aside, also in pages to come. */
  dismissLoss({ id, loss, revision }: ICluster): void {
    this._seen[id] = {
      revision,
      time: Date.now() / 1000,
      loss: loss?.time
    };
    this._remember();
    this._changed.emit();
  }

  private async _begin(): Promise<void> {
    const { model, state } = this._options;
    const stored = (await state?.fetch(STATE_KEY)) as unknown as
      Seen | undefined;
    this._seen = stored ?? {};
    model.changed.connect(() => void this._look());
    document.addEventListener('visibilitychange', () => {
      this._fresh = false;
      void this._look();
    });
    await this._look();
  }

  private async _look(): Promise<void> {
    const { model, trans } = this._options;
    if (document.hidden || model.connection !== 'ok') {
      return;
    }
    const now = Date.now() / 1000;
    const before = this._seen;
    const fresh = this._fresh;
    this._fresh = true;
    this._seen = Object.fromEntries(
      model.clusters.map(({ id, revision }) => [
        id,
        { revision, time: now, loss: before[id]?.loss }
      ])
    );
    this._remember();
    if (fresh) {
      return;
    }
    for (const { id, revision } of model.clusters) {
      const seen = before[id];
      if (
        seen !== undefined &&
        seen.revision < revision &&
        now - seen.time > AWAY_SECONDS
      ) {
        const events = await model.api.events(id).catch(() => []);
        const since = events.filter(event => event.time > seen.time);
        const words = accountOf(since, trans);
        if (words !== '') {
          this._news.set(id, words);
          this._changed.emit();
        }
      }
    }
  }

  private _remember(): void {
    const { state } = this._options;
    void state
      ?.save(
        STATE_KEY,
        this._seen as unknown as Parameters<IStateDB['save']>[1]
      )
      .catch(() => undefined);
  }

  private readonly _changed = new Signal<this, void>(this);
  private readonly _news = new Map<string, string>();
  private _seen: Seen = {};
  /** Whether somebody has been looking ever since the last look. */
  private _fresh = false;
}

/** "started 14:02, 1 worker lost, 1 worker joined": a timeline in one line. */
export function accountOf(
  events: ReadonlyArray<IClusterEvent>,
  trans: TranslationBundle
): string {
  const parts: string[] = [];
  for (const { kind, message, time } of events) {
    if (kind !== 'phase') {
      continue;
    }
    const at = moment(time);
    const phase = message.split(':')[0];
    const words = {
      running: trans.__('started %1', at),
      degraded: trans.__('degraded %1', at),
      failed: trans.__('failed %1', at),
      stopped: trans.__('stopped %1', at)
    }[phase];
    if (words !== undefined && parts.at(-1) !== words) {
      parts.push(words);
    }
  }
  const count = (kind: string): number =>
    events.filter(event => event.kind === kind).length;
  const lost = count('lost');
  const replaced = Math.min(lost, count('worker'));
  const gone = lost - replaced;
  if (replaced > 0) {
    parts.push(trans._n('%1 worker replaced', '%1 workers replaced', replaced));
  }
  if (gone > 0) {
    parts.push(trans._n('%1 worker lost', '%1 workers lost', gone));
  }
  return parts.join(', ');
}
