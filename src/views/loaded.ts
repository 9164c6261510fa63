/** Fetches what a view shows on demand, and again when it is out of date. */

import * as React from 'react';

/** The newest answer; null before the first. A failure leaves the last answer in place. */
export interface ILoaded<T> {
  value: T | null;
  failure: Error | null;
}

/**
 * @param load - fetches it
 * @param key - what the answer depends on; another key fetches anew, '' fetches nothing
 * @param delay - milliseconds to wait for a still newer key
 */
export function useLoaded<T>(
  load: () => Promise<T>,
  key: string,
  delay = 0
): ILoaded<T> {
  const [loaded, setLoaded] = React.useState<ILoaded<T>>({
    value: null,
    failure: null
  });
  const newest = React.useRef(load);
  newest.current = load;
  React.useEffect(() => {
    if (key === '') {
      return;
    }
    let over = false;
    const timer = window.setTimeout(() => {
      newest.current().then(
        value => {
          if (!over) {
            setLoaded({ value, failure: null });
          }
        },
        (error: unknown) => {
          if (!over) {
            const failure =
              error instanceof Error ? error : new Error(String(error));
            setLoaded(({ value }) => ({ value, failure }));
          }
        }
      );
    }, delay);
    return () => {
      over = true;
      window.clearTimeout(timer);
    };
  }, [key, delay]);
  return loaded;
}
