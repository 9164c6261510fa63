/** The sidebar's list of clusters, and what it shows when there is none or no answer. */

import type { TranslationBundle } from '@jupyterlab/translation';
import { caretRightIcon } from '@jupyterlab/ui-components';
import * as React from 'react';

import type { ICluster, IClustersModel, IProfile } from '../model/tokens';
import { profileHere, triedWords } from '../start/tryout';
import {
  isEnded,
  moment,
  needsAttention,
  nextEnd,
  phaseWord
} from '../model/words';
import { useNow } from '../ui/now';
import { holds, SearchField } from '../ui/search';
import { ClusterCard } from './card';
import type { ICardActions } from '../details/cardActions';
import { Shortened } from '../ui/timeline';
import { Button } from '../ui/button';

const HISTORY_AT_FIRST = 8;
/** From so many on they are sorted and filtered, and cards fold. */
const MANY = 5;
/** What has ended just now is shown with its reason. */
const RECENT_SECONDS = 3600;

/** What the list's own buttons do, beside those of its cards. */
export interface IListActions extends ICardActions {
  newCluster: (profile?: string) => void;
  /** Write a profile for a batch system that has none. */
  setUp: () => void;
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
  const [filter, setFilter] = React.useState(ALL);
  const [folds, setFolds] = React.useState<Record<string, boolean>>({});
  const many = model.clusters.length >= MANY;
  const shown = many ? filtered(model.clusters, filter, trans) : model.clusters;
  const live = shown.filter(cluster => !isEnded(cluster.phase));
  const ended = shown
    .filter(cluster => isEnded(cluster.phase))
    .sort((a, b) => (b.ended ?? 0) - (a.ended ?? 0));
  const { revealed } = props;
  React.useEffect(() => {
    if (revealed !== '') {
      setFilter(ALL);
      setFolds(known => ({ ...known, [revealed]: true }));
    }
  }, [revealed]);
  const isOpen = (cluster: ICluster): boolean =>
    folds[cluster.id] ??
    (isEnded(cluster.phase)
      ? cluster === ended[0] && now - (cluster.ended ?? 0) < RECENT_SECONDS
      : live.length < MANY || needsAttention(cluster, now));
  const fold = (cluster: ICluster): void =>
    setFolds({ ...folds, [cluster.id]: !isOpen(cluster) });
  const card = (cluster: ICluster): JSX.Element => (
    <ClusterCard
      cluster={cluster}
      actions={props.actions}
      now={now}
      open={isOpen(cluster)}
      onFold={() => fold(cluster)}
      reveal={cluster.id === revealed}
      onRevealed={props.onRevealed}
      trans={trans}
    />
  );
  const list = useKeptFocus();
  return (
    <div
      ref={list}
      className="jp-gpucluster-List"
      tabIndex={-1}
      aria-busy={model.connection === 'loading'}
      onKeyDown={moveBetweenCards}
    >
      <div className="jp-gpucluster-hidden" role="status">
        {announcement}
      </div>
      <ConnectionNotice model={model} trans={trans} />
      {many && (
        <FilterFields filter={filter} onChange={setFilter} trans={trans} />
      )}
      {model.lastAnswer !== null && !hasLive(model) && (
        <EmptyNotice
          tried={profileHere(model)}
          text={
            model.clusters.length === 0
              ? trans.__(
                  'No cluster yet. Start one and use it from any notebook here.'
                )
              : trans.__('No cluster is running.')
          }
          actions={props.actions}
          trans={trans}
        />
      )}
      <ul className="jp-gpucluster-Cards">
        {live.map(cluster => (
          <li key={cluster.id}>{card(cluster)}</li>
        ))}
      </ul>
      {ended.length > 0 && (
        <>
          <h3 className="jp-gpucluster-List-heading">{trans.__('History')}</h3>
          <Shortened items={ended} first={HISTORY_AT_FIRST} trans={trans}>
            {first => (
              <History
                clusters={first}
                isOpen={isOpen}
                onFold={fold}
                card={card}
                trans={trans}
              />
            )}
          </Shortened>
        </>
      )}
    </div>
  );
}

function hasLive(model: IClustersModel): boolean {
  return model.clusters.some(cluster => !isEnded(cluster.phase));
}

interface IFilter {
  text: string;
  order: 'started' | 'name' | 'phase' | 'end';
}

const ALL: IFilter = { text: '', order: 'started' };

/** The clusters whose name, profile or phase holds a text, in an order. */
function filtered(
  clusters: ReadonlyArray<ICluster>,
  filter: IFilter,
  trans: TranslationBundle
): ICluster[] {
  const found = clusters.filter(({ name, profile, title, phase }) =>
    holds(filter.text, name, profile, title, phaseWord(phase, trans))
  );
  const end = (cluster: ICluster): number => nextEnd(cluster)?.ends ?? Infinity;
  const orders: Record<IFilter['order'], (a: ICluster, b: ICluster) => number> =
    {
      started: () => 0,
      name: (a, b) => a.name.localeCompare(b.name),
      phase: (a, b) => a.phase.localeCompare(b.phase),
      end: (a, b) => (end(a) < end(b) ? -1 : end(a) > end(b) ? 1 : 0)
    };
  return found.sort(orders[filter.order]);
}

function FilterFields(props: {
  filter: IFilter;
  onChange: (filter: IFilter) => void;
  trans: TranslationBundle;
}): JSX.Element {
  const { filter, onChange, trans } = props;
  return (
    <div className="jp-gpucluster-Filter" role="search">
      <SearchField
        label={trans.__('Filter clusters')}
        value={filter.text}
        onChange={text => onChange({ ...filter, text })}
      />
      <select
        className="jp-mod-styled"
        aria-label={trans.__('Order of clusters')}
        value={filter.order}
        onChange={event =>
          onChange({
            ...filter,
            order: event.target.value as IFilter['order']
          })
        }
      >
        <option value="started">{trans.__('as started')}</option>
        <option value="name">{trans.__('by name')}</option>
        <option value="phase">{trans.__('by state')}</option>
        <option value="end">{trans.__('next to end first')}</option>
      </select>
    </div>
  );
}

/** Ended clusters, a line each; one that is open shows its card instead. */
function History(props: {
  clusters: ICluster[];
  isOpen: (cluster: ICluster) => boolean;
  onFold: (cluster: ICluster) => void;
  card: (cluster: ICluster) => JSX.Element;
  trans: TranslationBundle;
}): JSX.Element {
  const { isOpen, onFold, trans } = props;
  return (
    <table className="jp-gpucluster-History">
      <thead>
        <tr>
          <th scope="col">{trans.__('Name')}</th>
          <th scope="col">{trans.__('State')}</th>
          <th scope="col">{trans.__('Ended')}</th>
        </tr>
      </thead>
      <tbody>
        {props.clusters.map(cluster => (
          <tr key={cluster.id}>
            {isOpen(cluster) ? (
              <td colSpan={3}>{props.card(cluster)}</td>
            ) : (
              <>
                <th scope="row">
                  <button
                    type="button"
                    className="jp-gpucluster-Fold"
                    data-cluster={cluster.id}
                    aria-expanded={false}
                    title={cluster.reason.split('\n')[0]}
                    onClick={() => onFold(cluster)}
                  >
                    <caretRightIcon.react
                      tag="span"
                      aria-hidden="true"
                      width="16px"
                    />
                    {cluster.name}
                  </button>
                </th>
                <td>{phaseWord(cluster.phase, trans)}</td>
                <td>{moment(cluster.ended ?? cluster.phase_since)}</td>
              </>
            )}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** Move the focus with the arrow keys from card to card. */
function moveBetweenCards(event: React.KeyboardEvent<HTMLElement>): void {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const from =
    event.target instanceof HTMLElement
      ? event.target.closest('.jp-gpucluster-Fold, .jp-gpucluster-Card')
      : null;
  if (step === undefined || from !== event.target) {
    return;
  }
  const stops = [
    ...event.currentTarget.querySelectorAll<HTMLElement>('.jp-gpucluster-Fold')
  ];
  const own = from.querySelector<HTMLElement>('.jp-gpucluster-Fold') ?? from;
  const next = stops[stops.indexOf(own as HTMLElement) + step];
  if (next !== undefined) {
    event.preventDefault();
    next.focus();
  }
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
      <Button label={props.trans.__('Try again')} onClick={props.onRetry} />
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
        <Button
          label={trans.__('New GPU cluster…')}
          accept
          onClick={() => actions.newCluster()}
        />
        {props.tried !== undefined && (
          <Button
            label={trans.__(
              'Try on this machine (%1)',
              triedWords(props.tried, trans)
            )}
            onClick={actions.tryHere}
          />
        )}
        <Button
          label={trans.__('Open benchmark notebook…')}
          onClick={actions.openNotebook}
        />
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
      const card =
        target instanceof Element
          ? target.closest<HTMLElement>('[data-cluster]')
          : null;
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
        `[data-cluster="${lost.dataset.cluster}"]`
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
