/** The clusters that a cell of a notebook was about, as they are now. */

import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import type { ICluster, IClustersModel } from '../model/tokens';
import { isConnectable, isOurs, isSteerable } from '../model/words';
import { WorkersBar } from '../ui/bar';
import { useNow } from '../ui/now';
import { Badges, LossLine, PhaseLine, Readings, Reasons } from '../ui/state';
import { Shortened } from '../ui/timeline';
import { Button } from '../ui/button';

/** What a cell's output keeps of clusters. */
export interface IOutput {
  clusters: { id: string; name: string }[];
  /** What the cell has to say beside; may be empty. */
  words: string;
}

export interface IOutputActions {
  openDetails: (cluster: ICluster) => void;
  openDashboard: (cluster: ICluster) => void;
  connect: (cluster: ICluster) => void;
  stop: (cluster: ICluster) => void;
  showCluster: (cluster: ICluster) => void;
}

interface IOutputViewProps {
  output: IOutput;
  model: IClustersModel;
  actions: IOutputActions;
  trans: TranslationBundle;
}

export function OutputView(props: IOutputViewProps): JSX.Element {
  const { output, model, trans } = props;
  const now = useNow();
  return (
    <>
      {output.words !== '' && <p>{output.words}</p>}
      <Shortened items={output.clusters} trans={trans}>
        {items => (
          <ul className="jp-gpucluster-Cards">
            {items.map(({ id, name }) => {
              const cluster = model.cluster(id);
              return (
                <li key={id}>
                  {cluster === undefined ? (
                    <p>{goneWords(name, model, trans)}</p>
                  ) : (
                    <OutputCard {...props} cluster={cluster} now={now} />
                  )}
                </li>
              );
            })}
          </ul>
        )}
      </Shortened>
    </>
  );
}

function OutputCard(
  props: IOutputViewProps & { cluster: ICluster; now: number }
): JSX.Element {
  const { actions, cluster, now, trans } = props;
  const buttons: [string, string, (cluster: ICluster) => void][] = [
    [
      trans.__('Details'),
      trans.__('Details of %1', cluster.name),
      actions.openDetails
    ],
    [
      trans.__('Show in the sidebar'),
      trans.__('Show in the sidebar: %1', cluster.name),
      actions.showCluster
    ]
  ];
  if (isConnectable(cluster)) {
    buttons.unshift([
      trans.__('Connect'),
      trans.__('Connect a notebook to %1', cluster.name),
      actions.connect
    ]);
  }
  if (isOurs(cluster) && isSteerable(cluster.phase)) {
    buttons.push([
      trans.__('Stop'),
      trans.__('Stop %1', cluster.name),
      actions.stop
    ]);
  }
  if (cluster.dashboard !== null) {
    buttons.unshift([
      trans.__('Dashboard'),
      trans.__('Dashboard of %1', cluster.name),
      actions.openDashboard
    ]);
  }
  return (
    <article
      className="jp-gpucluster-Card"
      data-phase={cluster.phase}
      aria-label={cluster.name}
    >
      <header className="jp-gpucluster-Card-header">
        <strong>{cluster.name}</strong>
        <span className="jp-gpucluster-Card-profile">{cluster.title}</span>
      </header>
      <LossLine cluster={cluster} trans={trans} />
      <PhaseLine cluster={cluster} now={now} trans={trans} />
      <Reasons cluster={cluster} trans={trans} />
      <Badges cluster={cluster} trans={trans} />
      <WorkersBar cluster={cluster} trans={trans} />
      <Readings cluster={cluster} now={now} trans={trans} />
      <div className="jp-gpucluster-Buttons">
        {buttons.map(([label, name, open]) => (
          <Button
            label={label}
            key={label}
            name={name}
            onClick={() => open(cluster)}
          />
        ))}
      </div>
    </article>
  );
}

function goneWords(
  name: string,
  model: IClustersModel,
  trans: TranslationBundle
): string {
  if (model.lastAnswer === null) {
    return model.failure === null
      ? trans.__('Looking for %1…', name)
      : trans.__('%1 cannot be shown: the server does not answer.', name);
  }
  return trans.__('%1 is gone.', name);
}
