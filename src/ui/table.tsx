/** A table that scrolls sideways where its columns have no room. */

import * as React from 'react';

interface ITableProps {
  /** Its name for screen readers, which tells it from that of another cluster. */
  name?: string;
  caption: string;
  /** Texts above the columns; false for one that is left out. */
  heads: (string | false | undefined)[];
  /** The rows. */
  children: React.ReactNode;
}

export function Table(props: ITableProps): JSX.Element {
  return (
    <div
      className="jp-gpucluster-Jobs"
      role="group"
      tabIndex={0}
      aria-label={props.name ?? props.caption}
    >
      <table>
        <caption>{props.caption}</caption>
        <thead>
          <tr>
            {props.heads.filter(Boolean).map(head => (
              <th key={String(head)} scope="col">
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{props.children}</tbody>
      </table>
    </div>
  );
}
