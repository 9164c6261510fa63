/** One bar that shows how far the workers of a cluster are, with the numbers in words. */

import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import type { ICluster } from '../model/tokens';
import { isEnded } from '../model/words';

interface IWorkersBarProps {
  cluster: ICluster;
  trans: TranslationBundle;
}

/** Workers by how far they are; with numbers as long as not all that were asked for are ready. */
export function WorkersBar(props: IWorkersBarProps): JSX.Element | null {
  const { cluster, trans } = props;
  const { workers } = cluster;
  // What is gone while its cluster stops is not lost.
  const stopping = cluster.phase === 'stopping';
  // A head of an older version counts what a stop ends as lost.
  const ending = (workers.ending ?? 0) + (stopping ? workers.lost : 0);
  const parts = [
    { kind: 'ready', count: workers.ready, words: trans.__('ready') },
    { kind: 'starting', count: workers.starting, words: trans.__('starting') },
    { kind: 'pending', count: workers.pending, words: trans.__('waiting') },
    { kind: 'ending', count: ending, words: trans.__('ending') },
    {
      kind: 'lost',
      count: stopping ? 0 : workers.lost,
      words: trans.__('lost')
    }
  ].filter(part => part.count > 0);
  const known = parts.reduce((sum, part) => sum + part.count, 0);
  const whole = Math.max(workers.asked, known);
  if (whole === 0 || isEnded(cluster.phase)) {
    return null;
  }
  return (
    <div className="jp-gpucluster-Workers">
      <div className="jp-gpucluster-Bar" aria-hidden="true">
        {parts.map(part => (
          <span
            key={part.kind}
            className="jp-gpucluster-Bar-part"
            data-kind={part.kind}
            style={{ width: `${(100 * part.count) / whole}%` }}
          />
        ))}
      </div>
      {workers.ready !== workers.asked && (
        <ul
          className="jp-gpucluster-Workers-numbers"
          aria-label={trans.__('Workers')}
        >
          {parts.map(part => (
            <li key={part.kind}>
              <span
                className="jp-gpucluster-Bar-part"
                data-kind={part.kind}
                aria-hidden="true"
              />
              {trans.__('%1 %2', part.count, part.words)}
            </li>
          ))}
          {!stopping && <li>{trans.__('%1 requested', workers.asked)}</li>}
        </ul>
      )}
    </div>
  );
}
