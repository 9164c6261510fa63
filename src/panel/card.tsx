/** One cluster in the sidebar: how it is, and what can be done with it. */

import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import type { ICluster } from '../model/tokens';
import { isEnded, isQueued, isSteerable } from '../model/words';
import { WorkersBar } from '../ui/bar';
import { CardButtons } from './buttons';
import type { ICardActions } from './cardActions';
import { ClusterDetails } from '../ui/facts';
import { ScaleForm } from './scale';
import { Badges, LossLine, PhaseLine, Readings, Reasons } from '../ui/state';

interface IClusterCardProps {
  cluster: ICluster;
  actions: ICardActions;
  /** Epoch seconds, for "since when". */
  now: number;
  /** Whether the card should take the focus. */
  reveal: boolean;
  onRevealed: () => void;
  trans: TranslationBundle;
}

export function ClusterCard(props: IClusterCardProps): JSX.Element {
  const { cluster, actions, now, trans, reveal, onRevealed } = props;
  const [scaling, setScaling] = React.useState(false);
  const card = React.useRef<HTMLElement>(null);
  const scaleButton = React.useRef<HTMLButtonElement>(null);
  const open = scaling && isSteerable(cluster.phase) && !isQueued(cluster);
  const live = !isEnded(cluster.phase);

  React.useEffect(() => {
    if (reveal) {
      card.current?.focus();
      card.current?.scrollIntoView({ block: 'nearest' });
      onRevealed();
    }
  }, [reveal, onRevealed]);

  return (
    <article
      ref={card}
      className="jp-gpucluster-Card"
      data-phase={cluster.phase}
      data-cluster={cluster.id}
      aria-labelledby={`jp-gpucluster-name-${cluster.id}`}
      tabIndex={-1}
      onFocus={() => actions.touch(cluster)}
    >
      <header
        className="jp-gpucluster-Card-header"
        data-draggable={live}
        title={
          live ? trans.__('Drag into a notebook to connect it') : undefined
        }
        onPointerDown={live ? event => actions.drag(cluster, event) : undefined}
      >
        <h3 id={`jp-gpucluster-name-${cluster.id}`}>{cluster.name}</h3>
        <span className="jp-gpucluster-Card-profile">{cluster.title}</span>
      </header>
      <News cluster={cluster} actions={actions} trans={trans} />
      <LossLine cluster={cluster} trans={trans} />
      <PhaseLine cluster={cluster} now={now} trans={trans} />
      <Reasons cluster={cluster} trans={trans} />
      <Badges cluster={cluster} trans={trans} />
      {live && (
        <WorkersBar
          workers={cluster.workers}
          stopping={cluster.phase === 'stopping'}
          trans={trans}
        />
      )}
      <Readings cluster={cluster} now={now} trans={trans} />
      <CardButtons
        cluster={cluster}
        actions={actions}
        now={now}
        scaling={open}
        scaleButton={scaleButton}
        onScale={() => setScaling(!open)}
        trans={trans}
      />
      {open && (
        <ScaleForm
          cluster={cluster}
          trans={trans}
          onScale={target => actions.scale(cluster, target)}
          onClose={() => {
            setScaling(false);
            scaleButton.current?.focus();
          }}
        />
      )}
      <ClusterDetails
        cluster={cluster}
        source={actions}
        now={now}
        onOpenTab={() => actions.openDetails(cluster)}
        trans={trans}
      />
    </article>
  );
}

/** "Since you were away: …", until it is put aside. */
function News(props: {
  cluster: ICluster;
  actions: ICardActions;
  trans: TranslationBundle;
}): JSX.Element | null {
  const { cluster, actions, trans } = props;
  const news = actions.news(cluster);
  if (news === '') {
    return null;
  }
  return (
    <div className="jp-gpucluster-Card-news" role="note">
      <p>{trans.__('Since you were away: %1', news)}</p>
      <button
        type="button"
        className="jp-gpucluster-Button"
        aria-label={trans.__('Dismiss the summary of %1', cluster.name)}
        onClick={() => actions.dismissNews(cluster)}
      >
        {trans.__('Dismiss')}
      </button>
    </div>
  );
}
