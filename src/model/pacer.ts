/** When the server is asked: by whether the page is seen and used, and by what is live. */

import type { IDisposable } from '@lumino/disposable';
import { DisposableDelegate } from '@lumino/disposable';
import { Poll } from '@lumino/polling';

/** A page that is used while a cluster lives. */
const USED_MS = 2_000;
/** A page that is seen, and was used within the hour. */
const SEEN_MS = 15_000;
/** A page that is seen, and was not used for an hour. */
const LEFT_MS = 60_000;
/** A hidden page while a cluster lives or is awaited. */
const HIDDEN_MS = 30_000;
/** A page that is used while the server does not answer. */
const RETRY_MS = 5_000;
/** Between two requests for touches of a page. */
const REST_MS = 1_000;

const USED_FOR_MS = 300_000;
const LEFT_AFTER_MS = 3_600_000;
const TOUCHES = ['pointerdown', 'pointermove', 'keydown', 'wheel'] as const;

/** What the pace depends on, beside what the page sees by itself. */
interface IPaced {
  /** Whether a cluster lives. */
  live(): boolean;
  /** Whether the last request failed. */
  failing(): boolean;
}

/** Polls while someone watches, and at once when the page is shown, or touched after a pause. */
export class Pacer implements IDisposable {
  /**
   * @param ask - what to do each time
   * @param state - what the pace depends on
   */
  constructor(
    ask: () => Promise<void>,
    private readonly _state: IPaced
  ) {
    this._poll = new Poll({
      auto: false,
      name: 'jupyter-gpucluster:clusters',
      factory: ask,
      frequency: { interval: SEEN_MS, backoff: false, max: LEFT_MS },
      standby: () => {
        this._pace();
        return this._watchers === 0 || this._interval() === null;
      }
    });
    document.addEventListener('visibilitychange', this._onShown);
    for (const touch of TOUCHES) {
      document.addEventListener(touch, this._onTouch, OPTIONS);
    }
  }

  get isDisposed(): boolean {
    return this._poll.isDisposed;
  }

  dispose(): void {
    document.removeEventListener('visibilitychange', this._onShown);
    for (const touch of TOUCHES) {
      document.removeEventListener(touch, this._onTouch, OPTIONS);
    }
    this._poll.dispose();
  }

  /**
   * Ask now, and again and again until the result is disposed.
   *
   * @param awaiting - whether someone waits for a change, also while the page is hidden
   */
  watch(awaiting: boolean): IDisposable {
    this._watchers += 1;
    this._awaiting += awaiting ? 1 : 0;
    void this._poll.refresh();
    return new DisposableDelegate(() => {
      this._watchers -= 1;
      this._awaiting -= awaiting ? 1 : 0;
    });
  }

  /** Set the pace after an answer, which may have come to a request of someone else. */
  adjust(): void {
    const before = this._poll.frequency.interval;
    const interval = this._pace();
    // A poll that is scheduled already would wait out the longer time.
    if (interval < before && this._watchers > 0) {
      void this._poll.schedule({ interval, phase: 'refreshed' });
    }
  }

  /** Milliseconds between two requests; null while the page is to ask nothing. */
  private _interval(): number | null {
    const failing = this._state.failing();
    const live = this._state.live();
    if (document.hidden) {
      return live || this._awaiting > 0 ? HIDDEN_MS : null;
    }
    const untouched = Date.now() - this._touched;
    if (untouched < USED_FOR_MS && (live || failing)) {
      return failing ? RETRY_MS : USED_MS;
    }
    return untouched < LEFT_AFTER_MS ? SEEN_MS : LEFT_MS;
  }

  private _pace(): number {
    const interval = this._interval() ?? HIDDEN_MS;
    this._poll.frequency = { interval, backoff: false, max: LEFT_MS };
    return interval;
  }

  private readonly _onTouch = (): void => {
    const paused = Date.now() - this._touched >= USED_FOR_MS;
    this._touched = Date.now();
    if (paused || this._state.failing()) {
      this._hurry();
    }
  };

  private readonly _onShown = (): void => {
    if (!document.hidden) {
      this._touched = Date.now();
      this._hurry();
    }
  };

  /** Ask now, unless a request was sent a moment ago. */
  private _hurry(): void {
    const rested = Date.now() - this._poll.state.timestamp > REST_MS;
    if (this._watchers > 0 && rested) {
      void this._poll.refresh();
    }
  }

  private readonly _poll: Poll;
  private _watchers = 0;
  private _awaiting = 0;
  private _touched = Date.now();
}

const OPTIONS = { capture: true, passive: true };
