/** A field that narrows a list. */

import * as React from 'react';

import type { IProfile } from '../model/tokens';

interface ISearchFieldProps {
  label: string;
  value: string;
  onChange: (value: string) => void;
  onEnter?: () => void;
}

export function SearchField(props: ISearchFieldProps): JSX.Element {
  return (
    <input
      type="search"
      className="jp-gpucluster-Search jp-mod-styled"
      aria-label={props.label}
      placeholder={props.label}
      value={props.value}
      onChange={event => props.onChange(event.target.value)}
      onKeyDown={event => {
        if (event.key === 'Enter') {
          props.onEnter?.();
        }
      }}
    />
  );
}

/** Whether one of several texts holds what was typed. */
export function holds(typed: string, ...texts: string[]): boolean {
  const wanted = typed.trim().toLowerCase();
  return texts.some(text => text.toLowerCase().includes(wanted));
}

/** From more than so many on they are searched. */
export const MANY_PROFILES = 5;

/** The profiles whose name, title or words hold what was typed. */
export function foundProfiles(
  profiles: ReadonlyArray<IProfile>,
  typed: string
): IProfile[] {
  return profiles.filter(({ name, title, summary, words, backend }) =>
    holds(typed, name, title, summary, words, backend)
  );
}
