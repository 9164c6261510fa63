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
import { Button } from '../ui/button';
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
        <Button
          label={trans.__('Fix and retry')}
          name={trans.__('Fix and retry %1', cluster.name)}
          tip={trans.__('Change what made it fail, and start it again')}
          accept
          onClick={() => actions.fix(cluster)}
        />
      ) : (
        <Button
          label={trans.__('Start again')}
          name={trans.__('Start again a cluster like %1', cluster.name)}
          tip={trans.__('Start one with the same choices')}
          onClick={() => actions.startAgain(cluster)}
        />
      )}
      <Button
        label={trans.__('Show log')}
        name={trans.__('Show log of %1', cluster.name)}
        tip={trans.__('Show the newest lines of its logs')}
        onClick={() => actions.showLog(cluster)}
      />
      <Button
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
      <Button
        label={trans.__('Tell me when it is ready')}
        name={trans.__('Tell me when it is ready: %1', cluster.name)}
        tip={trans.__('Get a notification of the browser')}
        pressed={actions.isAwaited(cluster)}
        onClick={() => void actions.notify(cluster).then(drawAgain)}
      />
      <Button
        label={trans.__('Edit and resubmit')}
        name={trans.__('Edit and resubmit %1', cluster.name)}
        tip={trans.__('Replace the waiting request with an edited one')}
        onClick={() => actions.resubmit(cluster)}
      />
      <Button
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
      <Button
        label={trans.__('Dashboard')}
        name={trans.__('Dashboard of %1', cluster.name)}
        tip={trans.__('Show the plots of Dask')}
        why={
          cluster.dashboard !== null
            ? ''
            : isOurs(cluster)
              ? unavailable(cluster, trans)
              : foreignDashboard(trans)
        }
        onClick={() => actions.openDashboard(cluster)}
      />
      <Button
        label={trans.__('Connect')}
        name={trans.__('Connect a notebook to %1', cluster.name)}
        tip={trans.__('Insert the code that connects a notebook')}
        why={isConnectable(cluster) ? '' : unavailable(cluster, trans)}
        onClick={() => actions.connect(cluster)}
      />
      {isOurs(cluster) ? (
        <SteeringButtons {...props} />
      ) : (
        <Button
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
      <Button
        ref={props.scaleButton}
        label={trans.__('Scale')}
        name={trans.__('Scale %1', cluster.name)}
        expanded={props.scaling}
        tip={trans.__('Change how many workers it has')}
        why={isSteerable(cluster.phase) ? '' : unavailable(cluster, trans)}
        onClick={props.onScale}
      />
      {isStuck(cluster, props.now) ? (
        <Button
          label={trans.__('Stop by force')}
          name={trans.__('Stop by force: %1', cluster.name)}
          tip={trans.__('End its processes and jobs without its scheduler')}
          onClick={() => actions.stopByForce(cluster)}
        />
      ) : (
        <Button
          label={trans.__('Stop')}
          name={trans.__('Stop %1', cluster.name)}
          tip={trans.__('End it with all its workers')}
          why={cluster.phase === 'stopping' ? unavailable(cluster, trans) : ''}
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
    <Button
      label={trans.__('More')}
      name={trans.__('More for %1', cluster.name)}
      tip={trans.__('Show the menu of this cluster')}
      menu
      onClick={event => actions.showMore(cluster, event.currentTarget)}
    />
  );
}
