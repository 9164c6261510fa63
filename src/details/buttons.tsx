/** The buttons of a card: what can be done with a cluster in its phase, the likeliest first. */

import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import type { ICluster } from '../model/tokens';
import {
  foreignDashboard,
  isConnectable,
  isEnded,
  isOurs,
  isQueued,
  isSteerable,
  isStuck
} from '../model/words';
import type { ICardActions } from './cardActions';

interface ICardButtonsProps {
  cluster: ICluster;
  actions: ICardActions;
  /** Epoch seconds. */
  now: number;
  scaling: boolean;
  scaleButton: React.RefObject<HTMLButtonElement>;
  onScale: () => void;
  trans: TranslationBundle;
}

export function CardButtons(props: ICardButtonsProps): JSX.Element {
  const { cluster } = props;
  return (
    <div className="jp-gpucluster-Buttons">
      {isEnded(cluster.phase) ? (
        <EndedButtons {...props} />
      ) : isQueued(cluster) ? (
        <QueuedButtons {...props} />
      ) : (
        <LiveButtons {...props} />
      )}
      <MoreButton {...props} />
    </div>
  );
}

function EndedButtons(props: ICardButtonsProps): JSX.Element {
  const { cluster, actions, trans } = props;
  return (
    <>
      {cluster.phase === 'failed' ? (
        <CardButton
          label={trans.__('Fix and retry')}
          name={trans.__('Fix and retry %1', cluster.name)}
          tip={trans.__('Change what made it fail, and start it again')}
          accept
          onClick={() => actions.fix(cluster)}
        />
      ) : (
        <CardButton
          label={trans.__('Start again')}
          name={trans.__('Start again a cluster like %1', cluster.name)}
          tip={trans.__('Start one with the same choices')}
          onClick={() => actions.startAgain(cluster)}
        />
      )}
      <CardButton
        label={trans.__('Show log')}
        name={trans.__('Show log of %1', cluster.name)}
        tip={trans.__('Show the newest lines of its logs')}
        onClick={() => actions.showLog(cluster)}
      />
      <CardButton
        label={trans.__('Remove from history')}
        name={trans.__('Remove from history: %1', cluster.name)}
        tip={trans.__('Delete its record and its logs')}
        onClick={() => actions.forget(cluster)}
      />
    </>
  );
}

/** While it waits there is nothing to connect to: the wait itself is what can be changed. */
function QueuedButtons(props: ICardButtonsProps): JSX.Element {
  const { cluster, actions, trans } = props;
  const [, drawAgain] = React.useReducer((count: number) => count + 1, 0);
  return (
    <>
      <CardButton
        label={trans.__('Tell me when it is ready')}
        name={trans.__('Tell me when it is ready: %1', cluster.name)}
        tip={trans.__('Get a notification of the browser')}
        pressed={actions.isAwaited(cluster)}
        onClick={() => void actions.notify(cluster).then(drawAgain)}
      />
      <CardButton
        label={trans.__('Edit and resubmit')}
        name={trans.__('Edit and resubmit %1', cluster.name)}
        tip={trans.__('Replace the waiting request with an edited one')}
        onClick={() => actions.resubmit(cluster)}
      />
      <CardButton
        label={trans.__('Cancel')}
        name={trans.__('Cancel %1', cluster.name)}
        tip={trans.__('Withdraw the request')}
        onClick={() => actions.stop(cluster)}
      />
    </>
  );
}

function LiveButtons(props: ICardButtonsProps): JSX.Element {
  const { cluster, actions, trans } = props;
  return (
    <>
      <CardButton
        label={trans.__('Dashboard')}
        name={trans.__('Dashboard of %1', cluster.name)}
        tip={trans.__('Show the plots of Dask')}
        disabled={cluster.dashboard === null}
        why={
          isOurs(cluster)
            ? unavailable(cluster, trans)
            : foreignDashboard(trans)
        }
        onClick={() => actions.openDashboard(cluster)}
      />
      <CardButton
        label={trans.__('Connect')}
        name={trans.__('Connect a notebook to %1', cluster.name)}
        tip={trans.__('Insert the code that connects a notebook')}
        disabled={!isConnectable(cluster)}
        why={unavailable(cluster, trans)}
        onClick={() => actions.connect(cluster)}
      />
      {isOurs(cluster) ? (
        <SteeringButtons {...props} />
      ) : (
        <CardButton
          label={trans.__('Detach')}
          name={trans.__('Detach %1', cluster.name)}
          tip={trans.__('Take it off this list; it keeps running')}
          onClick={() => actions.detach(cluster)}
        />
      )}
    </>
  );
}

/** What only a cluster that was started here can be asked for. */
function SteeringButtons(props: ICardButtonsProps): JSX.Element {
  const { cluster, actions, trans } = props;
  return (
    <>
      <CardButton
        ref={props.scaleButton}
        label={trans.__('Scale')}
        name={trans.__('Scale %1', cluster.name)}
        expanded={props.scaling}
        tip={trans.__('Change how many workers it has')}
        disabled={!isSteerable(cluster.phase)}
        why={unavailable(cluster, trans)}
        onClick={props.onScale}
      />
      {isStuck(cluster, props.now) ? (
        <CardButton
          label={trans.__('Stop by force')}
          name={trans.__('Stop by force: %1', cluster.name)}
          tip={trans.__('End its processes and jobs without its scheduler')}
          onClick={() => actions.stopByForce(cluster)}
        />
      ) : (
        <CardButton
          label={trans.__('Stop')}
          name={trans.__('Stop %1', cluster.name)}
          tip={trans.__('End it with all its workers')}
          disabled={cluster.phase === 'stopping'}
          why={unavailable(cluster, trans)}
          onClick={() => actions.stop(cluster)}
        />
      )}
    </>
  );
}

/** Why something cannot be done with a cluster now. */
function unavailable(cluster: ICluster, trans: TranslationBundle): string {
  switch (cluster.phase) {
    case 'stopping':
      return trans.__('It is stopping.');
    case 'unreachable':
      return trans.__('Its scheduler does not answer.');
    default:
      return trans.__('Its scheduler has not started yet.');
  }
}

function MoreButton(props: ICardButtonsProps): JSX.Element {
  const { cluster, actions, trans } = props;
  return (
    <CardButton
      label={trans.__('More')}
      name={trans.__('More for %1', cluster.name)}
      tip={trans.__('Show the menu of this cluster')}
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
  /** Whether it is what most users want next. */
  accept?: boolean;
  /** What it does, shown under the pointer. */
  tip?: string;
  disabled?: boolean;
  /** Why it is disabled. */
  why?: string;
  expanded?: boolean;
  pressed?: boolean;
  menu?: boolean;
  onClick: (event: React.MouseEvent<HTMLButtonElement>) => void;
}

/** Keeps the focus when it is disabled: a button that is truly disabled would drop it. */
const CardButton = React.forwardRef<HTMLButtonElement, ICardButtonProps>(
  (props, ref) => (
    <button
      ref={ref}
      type="button"
      className={
        props.accept
          ? 'jp-gpucluster-Button jp-mod-accept'
          : 'jp-gpucluster-Button'
      }
      aria-label={props.name}
      aria-expanded={props.expanded}
      aria-pressed={props.pressed}
      aria-haspopup={props.menu ? 'menu' : undefined}
      aria-disabled={props.disabled}
      title={props.disabled ? props.why : props.tip}
      onClick={props.disabled ? undefined : props.onClick}
    >
      {props.label}
    </button>
  )
);
