/** A line about all clusters, small enough for the status bar. */

import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { clusterIcon } from '../ui/icons';
import type { IClustersModel } from '../model/tokens';
import {
  duration,
  gpuHours,
  isEnded,
  nextEnd,
  totalWords
} from '../model/words';
import { useNow } from '../ui/now';

interface IStatusViewProps {
  model: IClustersModel;
  onClick: (event: React.MouseEvent<HTMLElement>) => void;
  trans: TranslationBundle;
}

/** A button with a menu of the clusters. */
export function StatusView(props: IStatusViewProps): JSX.Element {
  const { model, trans } = props;
  const now = useNow();
  const ends = model.clusters
    .filter(cluster => !isEnded(cluster.phase))
    .flatMap(cluster => nextEnd(cluster)?.ends ?? []);
  const hours = model.clusters
    .filter(cluster => !isEnded(cluster.phase))
    .reduce((sum, cluster) => sum + cluster.gpu_hours, 0);
  const counts = totalWords(model.clusters, trans);
  const total =
    hours < 0.05 ? counts : trans.__('%1, %2', counts, gpuHours(hours, trans));
  const words =
    ends.length === 0
      ? total
      : trans.__(
          '%1, %2 left',
          total,
          duration(Math.min(...ends) - now, trans)
        );
  const stale = model.connection !== 'ok';
  return (
    <button
      type="button"
      className="jp-gpucluster-Status"
      title={trans.__('GPU clusters')}
      aria-haspopup="menu"
      onClick={props.onClick}
    >
      <clusterIcon.react tag="span" aria-hidden="true" width="14px" />
      {stale ? trans.__('%1 (no answer)', words) : words}
    </button>
  );
}
