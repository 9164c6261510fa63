/** A labelled input with its help and its error, and the inputs for amounts. */

import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import type { FieldErrors, IAmounts } from './draft';
import { unitLabel } from '../model/words';

interface IInputProps {
  id: string;
  'aria-describedby': string | undefined;
  'aria-invalid': boolean;
}

interface IFieldProps {
  id: string;
  label: string;
  help?: string;
  error?: string;
  /** Whether the input is a check box, whose label stands beside it. */
  checkbox?: boolean;
  children: (input: IInputProps) => React.ReactNode;
}

/** An input with its label, and with what is wrong beneath it. */
export function Field(props: IFieldProps): JSX.Element {
  const { id, label, help, error } = props;
  const input = props.children(inputProps(id, help, error));
  return (
    <div className="jp-gpucluster-Field">
      {props.checkbox ? (
        <label className="jp-gpucluster-Check">
          {input}
          {label}
        </label>
      ) : (
        <>
          <label htmlFor={id}>{label}</label>
          {input}
        </>
      )}
      {help && (
        <div id={`${id}-help`} className="jp-gpucluster-Field-help">
          {help}
        </div>
      )}
      {error && <FieldError id={`${id}-error`} text={error} />}
    </div>
  );
}

/** What ties an input to its label, to its help and to what is wrong with it. */
export function inputProps(
  id: string,
  help?: string,
  error?: string
): IInputProps {
  const described = [help ? `${id}-help` : '', error ? `${id}-error` : ''];
  return {
    id,
    'aria-describedby': described.filter(Boolean).join(' ') || undefined,
    'aria-invalid': Boolean(error)
  };
}

/** What is wrong with a field, told at once to screen readers. */
export function FieldError(props: { id?: string; text: string }): JSX.Element {
  return (
    <div id={props.id} className="jp-gpucluster-Field-error" role="alert">
      {props.text}
    </div>
  );
}

interface IAmountFieldsProps {
  id: string;
  amounts: IAmounts;
  unit: string;
  /** What one gets. */
  help?: string;
  errors: FieldErrors;
  trans: TranslationBundle;
  onChange: (amounts: IAmounts) => void;
}

/** How many workers: a number, or two bounds when the cluster adapts to its load. */
export function AmountFields(props: IAmountFieldsProps): JSX.Element {
  const { amounts, errors, trans } = props;
  const number = (
    key: 'workers' | 'minimum' | 'maximum',
    label: string
  ): JSX.Element => (
    <Field
      key={key}
      id={`${props.id}-${key}`}
      label={label}
      error={errors[`target.${key}`]}
    >
      {input => (
        <input
          {...input}
          className="jp-mod-styled"
          type="number"
          step="any"
          inputMode="numeric"
          data-path={`target.${key}`}
          value={amounts[key]}
          onChange={event =>
            props.onChange({ ...amounts, [key]: event.target.value })
          }
        />
      )}
    </Field>
  );
  return (
    <div className="jp-gpucluster-Amounts">
      <div className="jp-gpucluster-Amounts-numbers">
        {amounts.adaptive
          ? [
              number('minimum', trans.__('Minimum')),
              number('maximum', trans.__('Maximum'))
            ]
          : number('workers', unitLabel(props.unit, trans))}
      </div>
      {props.help && (
        <div className="jp-gpucluster-Field-help" role="status">
          {props.help}
        </div>
      )}
      <label className="jp-gpucluster-Check">
        <input
          type="checkbox"
          checked={amounts.adaptive}
          onChange={event =>
            props.onChange({ ...amounts, adaptive: event.target.checked })
          }
        />
        {trans.__('Scale automatically')}
      </label>
    </div>
  );
}
