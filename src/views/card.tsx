/** One cluster in the sidebar: how it is, and what can be done with it. */

import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { phaseIcons } from '../icons';
import type { ICluster, TargetRequest } from '../tokens';
import {
  bytes,
  duration,
  isConnectable,
  isEnded,
  isSteerable,
  moment,
  phaseWord
} from '../words';
import { WorkersBar } from './bar';
import { ClusterDetails } from './details';
import { ScaleForm } from './scale';
import type { ITimelineSource } from './timeline';

/** What the buttons of a card do. */
export interface ICardActions extends ITimelineSource {
  openDashboard: (cluster: ICluster) => void;
  connect: (cluster: ICluster) => void;
  /** Rejects with the server's refusal, which the card shows. */
  scale: (cluster: ICluster, target: TargetRequest) => Promise<void>;
  stop: (cluster: ICluster) => void;
  forget: (cluster: ICluster) => void;
  startAgain: (cluster: ICluster) => void;
  showLog: (cluster: ICluster) => void;
  showMore: (cluster: ICluster, anchor: HTMLElement) => void;
}

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
  const { cluster, trans, reveal, onRevealed } = props;
  const [scaling, setScaling] = React.useState(false);
  const card = React.useRef<HTMLElement>(null);
  const scaleButton = React.useRef<HTMLButtonElement>(null);
  const open = scaling && isSteerable(cluster.phase);

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
    >
      <header className="jp-gpucluster-Card-header">
        <h3 id={`jp-gpucluster-name-${cluster.id}`}>{cluster.name}</h3>
        <span className="jp-gpucluster-Card-profile">{cluster.title}</span>
      </header>
      <PhaseLine cluster={cluster} now={props.now} trans={trans} />
      <Reasons cluster={cluster} trans={trans} />
      <Badges cluster={cluster} trans={trans} />
      {!isEnded(cluster.phase) && (
        <>
          <WorkersBar workers={cluster.workers} trans={trans} />
          <MemoryLine cluster={cluster} trans={trans} />
        </>
      )}
      <CardButtons
        cluster={cluster}
        actions={props.actions}
        scaling={open}
        scaleButton={scaleButton}
        onScale={() => setScaling(!open)}
        trans={trans}
      />
      {open && (
        <ScaleForm
          cluster={cluster}
          trans={trans}
          onScale={target => props.actions.scale(cluster, target)}
          onClose={() => {
            setScaling(false);
            scaleButton.current?.focus();
          }}
        />
      )}
      <ClusterDetails
        cluster={cluster}
        source={props.actions}
        now={props.now}
        trans={trans}
      />
    </article>
  );
}

interface ILineProps {
  cluster: ICluster;
  trans: TranslationBundle;
}

function PhaseLine(props: ILineProps & { now: number }): JSX.Element {
  const { cluster, trans } = props;
  const PhaseIcon = phaseIcons[cluster.phase].react;
  const since = cluster.ended ?? cluster.phase_since;
  return (
    <p className="jp-gpucluster-Card-phase">
      <PhaseIcon tag="span" aria-hidden="true" width="16px" />
      <strong>{phaseWord(cluster.phase, trans)}</strong>
      <span>
        {isEnded(cluster.phase)
          ? trans.__('at %1', moment(since))
          : trans.__('for %1', duration(props.now - since, trans))}
      </span>
      {!isEnded(cluster.phase) && cluster.words !== cluster.phase && (
        <span>{cluster.words}</span>
      )}
    </p>
  );
}

function Reasons(props: ILineProps): JSX.Element {
  const { cluster, trans } = props;
  return (
    <>
      {cluster.reason !== '' && (
        <p className="jp-gpucluster-Card-reason">{cluster.reason}</p>
      )}
      {cluster.stale_since !== null && (
        <p className="jp-gpucluster-Card-reason">
          {trans.__(
            'The queueing system has not answered since %1; this may be out of date.',
            moment(cluster.stale_since)
          )}
        </p>
      )}
    </>
  );
}

function Badges(props: ILineProps): JSX.Element | null {
  const { cluster, trans } = props;
  const badges = [
    cluster.simulated && trans.__('simulation'),
    !cluster.encrypted && trans.__('not encrypted'),
    !isEnded(cluster.phase) &&
      !cluster.survives &&
      trans.__('ends with Jupyter')
  ].filter(badge => badge !== false);
  return badges.length === 0 ? null : (
    <ul className="jp-gpucluster-Badges" aria-label={trans.__('Remarks')}>
      {badges.map(badge => (
        <li key={badge} className="jp-gpucluster-Badge">
          {badge}
        </li>
      ))}
    </ul>
  );
}

function MemoryLine(props: ILineProps): JSX.Element | null {
  const { cluster, trans } = props;
  if (cluster.memory_limit === 0 && cluster.memory_used === 0) {
    return null;
  }
  return (
    <p className="jp-gpucluster-Card-memory">
      {cluster.memory_limit === 0
        ? trans.__('Memory: %1', bytes(cluster.memory_used))
        : trans.__(
            'Memory: %1 of %2',
            bytes(cluster.memory_used),
            bytes(cluster.memory_limit)
          )}
    </p>
  );
}

interface ICardButtonsProps extends ILineProps {
  actions: ICardActions;
  scaling: boolean;
  scaleButton: React.RefObject<HTMLButtonElement>;
  onScale: () => void;
}

function CardButtons(props: ICardButtonsProps): JSX.Element {
  const { cluster, actions, trans } = props;
  if (isEnded(cluster.phase)) {
    return (
      <div className="jp-gpucluster-Buttons">
        <CardButton
          label={trans.__('Start again')}
          name={trans.__('Start again a cluster like %1', cluster.name)}
          onClick={() => actions.startAgain(cluster)}
        />
        <CardButton
          label={trans.__('Show log')}
          name={trans.__('Show log of %1', cluster.name)}
          onClick={() => actions.showLog(cluster)}
        />
        <CardButton
          label={trans.__('Forget')}
          name={trans.__('Forget %1', cluster.name)}
          onClick={() => actions.forget(cluster)}
        />
        <MoreButton {...props} />
      </div>
    );
  }
  return (
    <div className="jp-gpucluster-Buttons">
      <CardButton
        label={trans.__('Dashboard')}
        name={trans.__('Dashboard of %1', cluster.name)}
        disabled={cluster.dashboard === null}
        onClick={() => actions.openDashboard(cluster)}
      />
      <CardButton
        label={trans.__('Connect')}
        name={trans.__('Connect a notebook to %1', cluster.name)}
        disabled={!isConnectable(cluster)}
        onClick={() => actions.connect(cluster)}
      />
      <CardButton
        ref={props.scaleButton}
        label={trans.__('Scale')}
        name={trans.__('Scale %1', cluster.name)}
        expanded={props.scaling}
        disabled={!isSteerable(cluster.phase)}
        onClick={props.onScale}
      />
      <CardButton
        label={trans.__('Stop')}
        name={trans.__('Stop %1', cluster.name)}
        disabled={cluster.phase === 'stopping'}
        onClick={() => actions.stop(cluster)}
      />
      <MoreButton {...props} />
    </div>
  );
}

function MoreButton(props: ICardButtonsProps): JSX.Element {
  const { cluster, actions, trans } = props;
  return (
    <CardButton
      label={trans.__('More')}
      name={trans.__('More for %1', cluster.name)}
      menu
      onClick={event => actions.showMore(cluster, event.currentTarget)}
    />
  );
}

interface ICardButtonProps {
  /** The text on it. */
  label: string;
  /** The text that tells it from the same button of another card; it contains the label. */
  name: string;
  disabled?: boolean;
  expanded?: boolean;
  menu?: boolean;
  onClick: (event: React.MouseEvent<HTMLButtonElement>) => void;
}

/** Keeps the focus when it is disabled: a button that is truly disabled would drop it. */
const CardButton = React.forwardRef<HTMLButtonElement, ICardButtonProps>(
  (props, ref) => (
    <button
      ref={ref}
      type="button"
      className="jp-gpucluster-Button"
      aria-label={props.name}
      aria-expanded={props.expanded}
      aria-haspopup={props.menu ? 'menu' : undefined}
      aria-disabled={props.disabled}
      onClick={props.disabled ? undefined : props.onClick}
    >
      {props.label}
    </button>
  )
);
