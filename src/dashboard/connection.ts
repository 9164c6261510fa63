/** Whether a page of Dask's dashboard in a frame is connected, and how one notices that it is not. */

import { ApiError } from '../model/api';

/** A page has its figures by then, or its websocket never opened. */
const DRAWN_BY_MS = 30000;
/** The answers of a Hub (424) or of a proxy about a server, and of our server about a scheduler, that is away. */
const AWAY = [424, 502, 503, 504];

/** A window of Bokeh's. */
interface IBokehWindow extends Window {
  WebSocket: typeof WebSocket;
  Bokeh?: {
    /** One for each session that the page has received. */
    documents?: unknown[];
  };
}

/** Whether a request failed because the Jupyter server is away. */
export function isAway(failure: Error | null): boolean {
  return (
    failure instanceof ApiError &&
    (failure.status === 0 || AWAY.includes(failure.status))
  );
}

/**
 * Watch a page that has just been loaded.
 *
 * After a lost websocket Bokeh may get a new session of the scheduler, whose updates name models
 * that this page does not have: each raises an exception, and the figures stand still. So only a
 * new page helps.
 *
 * @param onLost - is called at most once, with whether the page was connected at all
 */
export function watchPage(
  frame: HTMLIFrameElement,
  onLost: (wasConnected: boolean) => void
): void {
  const page = frame.contentWindow as IBokehWindow | null;
  // The browser's own page about an error, or a login page elsewhere, may not be looked at.
  if (page === null || frame.contentDocument === null || isAnswerOfAway(page)) {
    onLost(false);
    return;
  }
  // Others, as those of Dask about a worker, have no websocket. Bokeh itself may still be under way.
  if (frame.contentDocument.querySelector('script[src*="bokeh"]') === null) {
    return;
  }
  const isDrawn = (): boolean => (page.Bokeh?.documents ?? []).length > 0;
  let lost = false;
  const lose = (wasConnected: boolean): void => {
    if (!lost) {
      lost = true;
      onLost(wasConnected);
    }
  };
  // Bokeh opens a second websocket when it has lost the first; older versions emit no event of it.
  page.WebSocket = class extends page.WebSocket {
    constructor(url: string | URL, protocols?: string | string[]) {
      super(url, protocols);
      if (isDrawn()) {
        lose(true);
      }
    }
  };
  // A timer of the page ends with it.
  page.setTimeout(() => {
    if (!isDrawn()) {
      lose(false);
    }
  }, DRAWN_BY_MS);
}

function isAnswerOfAway(page: Window): boolean {
  // Not every browser reports the status, nor every page.
  const [loaded] = (page.performance.getEntriesByType?.('navigation') ??
    []) as (PerformanceNavigationTiming | undefined)[];
  return AWAY.includes(loaded?.responseStatus ?? 0);
}
