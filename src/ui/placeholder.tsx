/** What a dashboard's tab shows while there is no dashboard. */

import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import type { IClustersModel } from '../model/tokens';
import { foreignDashboard, isEnded, isOurs, phaseWord } from '../model/words';
import { Button } from './button';

interface IDashboardPlaceholderProps {
  model: IClustersModel;
  /** The cluster's id. */
  cluster: string;
  /** Whether the cluster has a dashboard, to which the connection is lost. */
  lost: boolean;
  onShowCluster: (cluster: string) => void;
  onShowTimeline: (cluster: string) => void;
  trans: TranslationBundle;
}

export function DashboardPlaceholder(
  props: IDashboardPlaceholderProps
): JSX.Element {
  const { model, cluster, trans } = props;
  const known = model.cluster(cluster) !== undefined;
  const [title, text] = wordsFor(props);
  return (
    <div className="jp-gpucluster-Placeholder" role="status">
      <h2>{title}</h2>
      <p>{text}</p>
      {known && (
        <div className="jp-gpucluster-Buttons">
          <Button
            label={trans.__('Show the cluster')}
            onClick={() => props.onShowCluster(cluster)}
          />
          <Button
            label={trans.__('Show its timeline')}
            onClick={() => props.onShowTimeline(cluster)}
          />
        </div>
      )}
    </div>
  );
}

function wordsFor(props: IDashboardPlaceholderProps): [string, string] {
  const { model, trans } = props;
  const cluster = model.cluster(props.cluster);
  if (cluster === undefined) {
    if (model.connection === 'loading') {
      return [trans.__('Looking for the cluster…'), ''];
    }
    if (model.failure !== null) {
      return [
        trans.__('The dashboard cannot be shown.'),
        model.failure.message
      ];
    }
    return [
      trans.__('This cluster is gone.'),
      trans.__('Close this tab, or start a new cluster in the sidebar.')
    ];
  }
  if (props.lost && cluster.dashboard !== null) {
    return [
      trans.__('The dashboard of %1 is not connected.', cluster.name),
      trans.__(
        'It reconnects when the Jupyter server and the scheduler answer.'
      )
    ];
  }
  const phase = phaseWord(cluster.phase, trans);
  if (!isOurs(cluster) && !isEnded(cluster.phase)) {
    return [
      trans.__('The dashboard of %1 is not shown.', cluster.name),
      foreignDashboard(trans)
    ];
  }
  return isEnded(cluster.phase)
    ? [trans.__('%1 has ended.', cluster.name), cluster.reason || phase]
    : [
        trans.__('%1 has no dashboard now.', cluster.name),
        trans.__('%1. It opens here once there is one.', phase)
      ];
}
