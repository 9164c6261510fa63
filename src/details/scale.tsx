/** The small form in a card that changes how many workers a cluster has. */

import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { errorsOf } from '../start/blame';
import type { FieldErrors } from '../start/draft';
import { amountsOf, checkAmounts, targetOf } from '../start/draft';
import type { ICluster, TargetRequest } from '../model/tokens';
import { amount, rangeOf, targetWords } from '../model/words';
import { AmountFields, FieldError } from '../start/fields';
import { Button } from '../ui/button';

interface IScaleFormProps {
  cluster: ICluster;
  trans: TranslationBundle;
  onScale: (target: TargetRequest) => Promise<void>;
  onClose: () => void;
}

/** Amounts, what they would change, and the server's word when it refuses. */
export function ScaleForm(props: IScaleFormProps): JSX.Element {
  const { cluster, trans } = props;
  const [amounts, setAmounts] = React.useState(() => amountsOf(cluster));
  const [refusal, setRefusal] = React.useState<FieldErrors>({});
  const [busy, setBusy] = React.useState(false);
  const form = React.useRef<HTMLFormElement>(null);
  const errors = {
    ...refusal,
    ...checkAmounts(amounts, cluster.maximum_workers, trans)
  };
  const wrong = Object.keys(errors).some(path => path.startsWith('target.'));

  React.useEffect(() => {
    form.current?.querySelector<HTMLInputElement>('input[data-path]')?.select();
  }, []);

  const apply = async (): Promise<void> => {
    setBusy(true);
    try {
      await props.onScale(targetOf(amounts));
      props.onClose();
    } catch (error) {
      setRefusal(
        errorsOf(error, ['target.workers', 'target.minimum', 'target.maximum'])
      );
      setBusy(false);
    }
  };

  return (
    <form
      ref={form}
      className="jp-gpucluster-Scale"
      aria-label={trans.__('Scale %1', cluster.name)}
      onSubmit={event => {
        event.preventDefault();
        if (!wrong && !busy) {
          void apply();
        }
      }}
      onKeyDown={event => {
        if (event.key === 'Escape') {
          event.stopPropagation();
          props.onClose();
        }
      }}
    >
      <AmountFields
        id={`jp-gpucluster-scale-${cluster.id}`}
        amounts={amounts}
        unit={cluster.unit}
        errors={errors}
        trans={trans}
        onChange={changed => {
          setAmounts(changed);
          setRefusal({});
        }}
      />
      <p className="jp-gpucluster-Form-note" aria-live="polite">
        {wrong ? '' : preview(cluster, targetOf(amounts), trans)}
      </p>
      {errors[''] && <FieldError text={errors['']} />}
      <div className="jp-gpucluster-Buttons">
        <Button
          label={trans.__('Apply')}
          accept
          submit
          why={
            wrong
              ? trans.__('Correct the numbers first.')
              : busy
                ? trans.__('Asking the server…')
                : ''
          }
        />
        <Button label={trans.__('Cancel')} onClick={props.onClose} />
      </div>
    </form>
  );
}

/** What a new target would do to the workers there are. */
function preview(
  cluster: ICluster,
  request: TargetRequest,
  trans: TranslationBundle
): string {
  const { minimum, maximum } = rangeOf(request);
  const now = cluster.workers.asked;
  if (
    minimum === cluster.target.minimum &&
    maximum === cluster.target.maximum
  ) {
    return trans.__('No change.');
  }
  if (minimum !== maximum) {
    return trans.__(
      'Grows and shrinks with the load: %1.',
      targetWords({ minimum, maximum }, cluster.unit, trans)
    );
  }
  if (maximum > now) {
    return trans.__(
      'From %1 to %2: %3 more.',
      now,
      maximum,
      amount(maximum - now, cluster.unit, trans)
    );
  }
  return maximum < now
    ? trans.__(
        'From %1 to %2: %3 fewer. Results move to those that stay.',
        now,
        maximum,
        amount(now - maximum, cluster.unit, trans)
      )
    : trans.__('Stays at %1.', amount(now, cluster.unit, trans));
}
