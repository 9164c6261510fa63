/** When the server is asked: by who watches, by what is expected, and at once when the page is seen again. */

import type { IDisposable } from '@lumino/disposable';
import { DisposableDelegate } from '@lumino/disposable';
import { Poll } from '@lumino/polling';

const BUSY_INTERVAL_MS = 1000;
const CALM_INTERVAL_MS = 5000;
/** While hints of changes arrive, polling only guards against those that got lost. */
const HINTED_INTERVAL_MS = 20000;
const GLANCE_INTERVAL_MS = 30000;
const LONGEST_INTERVAL_MS = 60000;

/** Asks while someone watches a page that can be seen. */
export class Pacer implements IDisposable {
  /** @param ask - what to do each time; its rejection makes the times longer */
  constructor(ask: () => Promise<void>) {
    this._poll = new Poll({
      auto: false,
      name: 'jupyter-gpucluster:clusters',
      factory: ask,
      frequency: frequency(CALM_INTERVAL_MS),
      standby: () => (this._watchers === 0 ? true : 'when-hidden')
    });
    document.addEventListener('visibilitychange', this._onVisibility);
  }

  get isDisposed(): boolean {
    return this._poll.isDisposed;
  }

  dispose(): void {
    document.removeEventListener('visibilitychange', this._onVisibility);
    this._poll.dispose();
  }

  /**
   * Ask now, and again and again until the result is disposed.
   *
   * @param closely - whether someone waits for the next change; a glance is content with less
   */
  watch(closely: boolean): IDisposable {
    this._watchers += 1;
    this._close += closely ? 1 : 0;
    if (closely ? this._close === 1 : this._watchers === 1) {
      void this._poll.refresh();
    }
    return new DisposableDelegate(() => {
      this._watchers -= 1;
      this._close -= closely ? 1 : 0;
    });
  }

  /**
   * Set the time between two questions after an answer.
   *
   * @param busy - whether the next change is expected soon
   * @param hinted - whether hints of changes arrive
   * @param recovered - whether the question before had no answer
   */
  adjust(busy: boolean, hinted: boolean, recovered: boolean): void {
    if (this.isDisposed) {
      return;
    }
    const unhinted = busy ? BUSY_INTERVAL_MS : CALM_INTERVAL_MS;
    const close = hinted ? HINTED_INTERVAL_MS : unhinted;
    const interval = this._close > 0 ? close : GLANCE_INTERVAL_MS;
    const sooner = recovered || interval < this._poll.frequency.interval;
    this._poll.frequency = frequency(interval);
    // Else the poll would still wait out its longer time.
    if (sooner && this._watchers > 0) {
      void this._poll.schedule({ interval, phase: 'refreshed' });
    }
  }

  private readonly _onVisibility = (): void => {
    if (!document.hidden && this._watchers > 0) {
      void this._poll.refresh();
    }
  };

  private readonly _poll: Poll;
  private _watchers = 0;
  private _close = 0;
}

function frequency(interval: number): {
  interval: number;
  max: number;
  backoff: boolean;
} {
  return { interval, max: LONGEST_INTERVAL_MS, backoff: true };
}
