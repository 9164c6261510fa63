/** A line about all clusters, small enough for the status bar. */

import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { clusterIcon } from '../ui/icons';
import type { IClustersModel } from '../model/tokens';
import { duration, isEnded, nextEnd, totalWords } from '../model/words';
import { useNow } from '../ui/now';

interface IStatusViewProps {
  model: IClustersModel;
  onClick: () => void;
  trans: TranslationBundle;
}

/** A button that leads to the panel. */
export function StatusView(props: IStatusViewProps): JSX.Element {
  const { model, trans } = props;
  const now = useNow();
  const ends = model.clusters
    .filter(cluster => !isEnded(cluster.phase))
    .flatMap(cluster => nextEnd(cluster)?.ends ?? []);
  const total = totalWords(model.clusters, trans);
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
      title={trans.__('Show GPU clusters')}
      onClick={props.onClick}
    >
      <clusterIcon.react tag="span" aria-hidden="true" width="14px" />
      {stale ? trans.__('%1 (no answer)', words) : words}
    </button>
  );
}
