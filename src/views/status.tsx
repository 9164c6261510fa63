/** A line about all clusters, small enough for the status bar. */

import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { clusterIcon } from '../icons';
import type { IClustersModel } from '../tokens';
import { totalWords } from '../words';

interface IStatusViewProps {
  model: IClustersModel;
  onClick: () => void;
  trans: TranslationBundle;
}

/** A button that leads to the panel. */
export function StatusView(props: IStatusViewProps): JSX.Element {
  const { model, trans } = props;
  const words = totalWords(model.clusters, trans);
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
