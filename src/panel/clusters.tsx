/** The sidebar's list of clusters, and what it shows when there is none or no answer. */

import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import type { ICluster, IClustersModel, IProfile } from '../model/tokens';
import { profileHere, triedWords } from '../start/tryout';
import { isEnded, moment, phaseWord } from '../model/words';
import { useNow } from '../ui/now';
import { ClusterCard } from './card';
import type { ICardActions } from './cardActions';
import { Shortened } from '../ui/timeline';

const HISTORY_AT_FIRST = 5;

/** What the list's own buttons do, beside those of its cards. */
export interface IListActions extends ICardActions {
  newCluster: (profile?: string) => void;
  openNotebook: () => void;
  /** Start a small cluster here without asking. */
  tryHere: () => void;
}

interface IClusterListProps {
  model: IClustersModel;
  actions: IListActions;
  /** Id of the cluster whose card should take the focus; '' for none. */
  revealed: string;
  onRevealed: () => void;
  trans: TranslationBundle;
}

export function ClusterList(props: IClusterListProps): JSX.Element {
  const { model, trans } = props;
  const now = useNow();
  const announcement = useAnnouncement(model.clusters, trans);
  const live = model.clusters.filter(cluster => !isEnded(cluster.phase));
  const ended = model.clusters
    .filter(cluster => isEnded(cluster.phase))
    .sort((a, b) => (b.ended ?? 0) - (a.ended ?? 0));
  const card = (cluster: ICluster): JSX.Element => (
    <li key={cluster.id}>
      <ClusterCard
        cluster={cluster}
        actions={props.actions}
        now={now}
        reveal={cluster.id === props.revealed}
        onRevealed={props.onRevealed}
        trans={trans}
      />
    </li>
  );
  const list = useKeptFocus();
  return (
    <div
      ref={list}
      className="jp-gpucluster-List"
      tabIndex={-1}
      aria-busy={model.connection === 'loading'}
    >
      <div className="jp-gpucluster-hidden" role="status">
        {announcement}
      </div>
      <ConnectionNotice model={model} trans={trans} />
      {model.lastAnswer !== null && live.length === 0 && (
        <EmptyNotice
          tried={profileHere(model)}
          text={
            ended.length === 0
              ? trans.__(
                  'No cluster yet. Start one and use it from any notebook here.'
                )
              : trans.__('No cluster is running.')
          }
          actions={props.actions}
          trans={trans}
        />
      )}
      <ul className="jp-gpucluster-Cards">{live.map(card)}</ul>
      {ended.length > 0 && (
        <>
          <h3 className="jp-gpucluster-List-heading">{trans.__('History')}</h3>
          <Shortened items={ended} first={HISTORY_AT_FIRST} trans={trans}>
            {shown => (
              <ul className="jp-gpucluster-Cards">{shown.map(card)}</ul>
            )}
          </Shortened>
        </>
      )}
    </div>
  );
}

function ConnectionNotice(props: {
  model: IClustersModel;
  trans: TranslationBundle;
}): JSX.Element | null {
  const { model, trans } = props;
  switch (model.connection) {
    case 'ok':
      return null;
    case 'loading':
      return (
        <p className="jp-gpucluster-Notice">
          {trans.__('Looking for clusters…')}
        </p>
      );
    case 'unreachable':
    case 'stale':
      return (
        <Failure
          sticky
          text={
            model.lastAnswer === null
              ? trans.__('The clusters cannot be shown.')
              : trans.__(
                  'No answer since %1; what you see may be out of date.',
                  moment(model.lastAnswer / 1000)
                )
          }
          failure={model.failure}
          onRetry={() => void model.refresh()}
          trans={trans}
        />
      );
  }
}

interface IFailureProps {
  text: string;
  /** Whether it stays in sight when the list is scrolled. */
  sticky?: boolean;
  failure: Error | null;
  onRetry: () => void;
  trans: TranslationBundle;
}

/** What could not be fetched, why, and a way to try again. */
export function Failure(props: IFailureProps): JSX.Element {
  return (
    <div
      className="jp-gpucluster-Notice"
      data-kind="failure"
      data-sticky={props.sticky}
      role="alert"
    >
      <p>{props.text}</p>
      {props.failure !== null && <p>{props.failure.message}</p>}
      <button
        type="button"
        className="jp-gpucluster-Button"
        onClick={props.onRetry}
      >
        {props.trans.__('Try again')}
      </button>
    </div>
  );
}

function EmptyNotice(props: {
  text: string;
  /** The profile of this machine; undefined where there is none. */
  tried: IProfile | undefined;
  actions: IListActions;
  trans: TranslationBundle;
}): JSX.Element {
  const { actions, trans } = props;
  return (
    <div className="jp-gpucluster-Notice" data-kind="empty">
      <p>{props.text}</p>
      <div className="jp-gpucluster-Buttons">
        <button
          type="button"
          className="jp-gpucluster-Button jp-mod-accept"
          onClick={() => actions.newCluster()}
        >
          {trans.__('New GPU cluster…')}
        </button>
        {props.tried !== undefined && (
          <button
            type="button"
            className="jp-gpucluster-Button"
            onClick={actions.tryHere}
          >
            {trans.__(
              'Try on this machine (%1)',
              triedWords(props.tried, trans)
            )}
          </button>
        )}
        <button
          type="button"
          className="jp-gpucluster-Button"
          onClick={actions.openNotebook}
        >
          {trans.__('Open benchmark notebook…')}
        </button>
      </div>
    </div>
  );
}

/** Keeps the focus at a card that changes its place, or in the list when the card goes away. */
function useKeptFocus(): React.RefObject<HTMLDivElement> {
  const list = React.useRef<HTMLDivElement>(null);
  const focused = React.useRef<HTMLElement | null>(null);
  React.useEffect(() => {
    const note = (event: FocusEvent): void => {
      const { target } = event;
      const card = target instanceof Element ? target.closest('article') : null;
      focused.current = list.current?.contains(card) ? card : null;
    };
    document.addEventListener('focusin', note);
    return () => document.removeEventListener('focusin', note);
  }, []);
  React.useEffect(() => {
    const lost = focused.current;
    if (lost !== null && !lost.isConnected) {
      focused.current = null;
      const card = list.current?.querySelector<HTMLElement>(
        `article[data-cluster="${lost.dataset.cluster}"]`
      );
      (card ?? list.current)?.focus();
    }
  });
  return list;
}

/** What to tell a screen reader about the newest change of phase. */
function useAnnouncement(
  clusters: ReadonlyArray<ICluster>,
  trans: TranslationBundle
): string {
  const before = React.useRef<Map<string, string>>();
  const [text, setText] = React.useState('');
  React.useEffect(() => {
    const known = before.current;
    const news = clusters
      .filter(cluster => known && known.get(cluster.id) !== cluster.phase)
      .map(cluster =>
        trans.__('%1: %2', cluster.name, phaseWord(cluster.phase, trans))
      );
    before.current = new Map(clusters.map(item => [item.id, item.phase]));
    if (news.length > 0) {
      setText(news.join('. '));
    }
  }, [clusters, trans]);
  return text;
}
