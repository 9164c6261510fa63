/** What can be done with a cluster, in its card and on its page. */

import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import type { ICluster } from '../model/tokens';
import { isEnded, isOurs, isQueued, isSteerable } from '../model/words';
import { CardButtons } from './buttons';
import type { ICardActions } from './cardActions';
import { ScaleForm } from './scale';
import { Button } from '../ui/button';

interface IClusterActionsProps {
  cluster: ICluster;
  actions: ICardActions;
  /** Epoch seconds. */
  now: number;
  trans: TranslationBundle;
}

/** The buttons, with the form that one of them opens. */
export function ClusterActions(props: IClusterActionsProps): JSX.Element {
  const { cluster, actions, trans } = props;
  const [scaling, setScaling] = React.useState(false);
  const scaleButton = React.useRef<HTMLButtonElement>(null);
  const open = scaling && isSteerable(cluster.phase) && !isQueued(cluster);
  const scale = (): void => setScaling(!open);
  return (
    <>
      <IdleGpus {...props} onScale={scale} />
      <CardButtons
        {...props}
        scaling={open}
        scaleButton={scaleButton}
        onScale={scale}
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
    </>
  );
}

/** GPUs that are held and do nothing, and the two ways to give them back. */
function IdleGpus(
  props: IClusterActionsProps & { onScale: () => void }
): JSX.Element | null {
  const { cluster, actions, trans } = props;
  if (!cluster.gpu_words || isEnded(cluster.phase)) {
    return null;
  }
  return (
    <div className="jp-gpucluster-Card-idle" role="note">
      <p>{trans.__('Idle: %1', cluster.gpu_words)}</p>
      {isOurs(cluster) && isSteerable(cluster.phase) && (
        <div className="jp-gpucluster-Buttons">
          <Button
            label={trans.__('Shrink')}
            name={trans.__('Shrink %1', cluster.name)}
            onClick={props.onScale}
          />
          <Button
            label={trans.__('Stop')}
            name={trans.__('Stop %1, which is idle', cluster.name)}
            onClick={() => actions.stop(cluster)}
          />
        </div>
      )}
    </div>
  );
}
