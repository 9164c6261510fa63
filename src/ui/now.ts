/** The time that relative words are reckoned from. */

import * as React from 'react';

const CLOCK_STEP_MS = 15000;

/** The time in epoch seconds; its reader is drawn anew now and then. */
export function useNow(): number {
  const [, tick] = React.useReducer((count: number) => count + 1, 0);
  React.useEffect(() => {
    const timer = window.setInterval(tick, CLOCK_STEP_MS);
    return () => window.clearInterval(timer);
  }, []);
  return Date.now() / 1000;
}
