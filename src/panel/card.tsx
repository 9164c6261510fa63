/** One cluster in the sidebar: how it is, and what can be done with it. */

import type { TranslationBundle } from '@jupyterlab/translation';
import { caretDownIcon, caretRightIcon } from '@jupyterlab/ui-components';
import * as React from 'react';

import type { ICluster } from '../model/tokens';
import { isEnded, leftWords } from '../model/words';
import { WorkersBar } from '../ui/bar';
import type { ICardActions } from '../details/cardActions';
import { ClusterDetails } from '../ui/facts';
import { ClusterActions } from '../details/clusterActions';
import { Badges, LossLine, PhaseLine, Readings, Reasons } from '../ui/state';
import { Button } from '../ui/button';

interface IClusterCardProps {
  cluster: ICluster;
  actions: ICardActions;
  /** Epoch seconds, for "since when". */
  now: number;
  /** Whether it shows more than its headline. */
  open: boolean;
  onFold: () => void;
  /** Whether the card should take the focus. */
  reveal: boolean;
  onRevealed: () => void;
  trans: TranslationBundle;
}

export function ClusterCard(props: IClusterCardProps): JSX.Element {
  const { cluster, actions, now, open, trans, reveal, onRevealed } = props;
  const card = React.useRef<HTMLElement>(null);
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
      onContextMenu={event => {
        // As in all of Lab, the browser's own menu opens with Shift.
        if (!event.shiftKey) {
          event.preventDefault();
          event.stopPropagation();
          actions.showMore(cluster, event.currentTarget, event);
        }
      }}
    >
      <header
        className="jp-gpucluster-Card-header"
        data-draggable={live}
        title={
          live ? trans.__('Drag into a notebook to connect it') : undefined
        }
        onPointerDown={live ? event => actions.drag(cluster, event) : undefined}
      >
        <FoldButton {...props} />
        <h3 id={`jp-gpucluster-name-${cluster.id}`}>{cluster.name}</h3>
        <span className="jp-gpucluster-Card-left">
          {leftWords(cluster, now, trans)}
        </span>
      </header>
      {!actions.isLossDismissed(cluster) && (
        <LossLine
          cluster={cluster}
          onDismiss={() => actions.dismissLoss(cluster)}
          trans={trans}
        />
      )}
      {open ? (
        <OpenCard {...props} />
      ) : (
        <>
          <PhaseLine cluster={cluster} now={now} trans={trans} />
          <WorkersBar cluster={cluster} trans={trans} />
        </>
      )}
    </article>
  );
}

/** The keys between cards start from here, too. */
function FoldButton(props: IClusterCardProps): JSX.Element {
  const { cluster, open, trans } = props;
  const Caret = open ? caretDownIcon.react : caretRightIcon.react;
  return (
    <button
      type="button"
      className="jp-gpucluster-Fold"
      aria-expanded={open}
      aria-label={trans.__('Card of %1', cluster.name)}
      title={open ? trans.__('Show less') : trans.__('Show more')}
      onPointerDown={event => event.stopPropagation()}
      onClick={props.onFold}
    >
      <Caret tag="span" aria-hidden="true" width="16px" />
    </button>
  );
}

function OpenCard(props: IClusterCardProps): JSX.Element {
  const { cluster, actions, now, trans } = props;
  return (
    <>
      <div className="jp-gpucluster-Card-profile">
        {cluster.title}
        <Badges cluster={cluster} trans={trans} />
      </div>
      <News cluster={cluster} actions={actions} trans={trans} />
      <PhaseLine cluster={cluster} now={now} trans={trans} />
      <Reasons cluster={cluster} trans={trans} />
      <WorkersBar cluster={cluster} trans={trans} />
      <Readings cluster={cluster} now={now} trans={trans} />
      <ClusterActions {...props} />
      <ClusterDetails
        cluster={cluster}
        source={actions}
        now={now}
        onOpenTab={() => actions.openDetails(cluster)}
        trans={trans}
      />
    </>
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
      <Button
        label={trans.__('Dismiss')}
        name={trans.__('Dismiss the summary of %1', cluster.name)}
        onClick={() => actions.dismissNews(cluster)}
      />
    </div>
  );
}
