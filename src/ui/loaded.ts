/** What a view shows later: what it fetches on demand, and what has stood still for a while. */

import * as React from 'react';

import { asError } from '../model/api';

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
            const failure = asError(error);
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

/** Whether a value has been the same for so many milliseconds. */
export function useSettled<T>(value: T, delay: number): boolean {
  const [settled, setSettled] = React.useState<{ value: T } | null>(null);
  React.useEffect(() => {
    const timer = window.setTimeout(() => setSettled({ value }), delay);
    return () => window.clearTimeout(timer);
  }, [value, delay]);
  return settled?.value === value;
}
