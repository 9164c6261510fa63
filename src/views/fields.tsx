/** A labelled input with its help and its error, and the inputs for amounts and profile options. */

import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import type { FieldErrors, IAmounts } from '../draft';
import type { IOption } from '../tokens';
import { unitLabel } from '../words';

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
  children: (input: IInputProps) => React.ReactNode;
}

/** A label above an input, with what is wrong beneath it. */
export function Field(props: IFieldProps): JSX.Element {
  const helpId = `${props.id}-help`;
  const errorId = `${props.id}-error`;
  const described = [
    props.help ? helpId : '',
    props.error ? errorId : ''
  ].filter(Boolean);
  return (
    <div className="jp-gpucluster-Field">
      <label htmlFor={props.id}>{props.label}</label>
      {props.children({
        id: props.id,
        'aria-describedby': described.join(' ') || undefined,
        'aria-invalid': Boolean(props.error)
      })}
      {props.help && (
        <div id={helpId} className="jp-gpucluster-Field-help">
          {props.help}
        </div>
      )}
      {props.error && <FieldError id={errorId} text={props.error} />}
    </div>
  );
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
      <label className="jp-gpucluster-Check">
        <input
          type="checkbox"
          checked={amounts.adaptive}
          onChange={event =>
            props.onChange({ ...amounts, adaptive: event.target.checked })
          }
        />
        {trans.__('Adapt to the load')}
      </label>
    </div>
  );
}

interface IOptionFieldProps {
  id: string;
  name: string;
  option: IOption;
  value: string | boolean;
  error?: string;
  trans: TranslationBundle;
  onChange: (value: string | boolean) => void;
}

/** The input for one option of a profile. */
export function OptionField(props: IOptionFieldProps): JSX.Element {
  const { option, trans } = props;
  const { title } = option;
  const path = `options.${props.name}`;
  if (option.kind === 'boolean') {
    return (
      <div className="jp-gpucluster-Field">
        <label className="jp-gpucluster-Check">
          <input
            id={props.id}
            type="checkbox"
            data-path={path}
            checked={props.value === true}
            onChange={event => props.onChange(event.target.checked)}
          />
          {title}
        </label>
        {option.description && (
          <div className="jp-gpucluster-Field-help">{option.description}</div>
        )}
        {props.error && <FieldError text={props.error} />}
      </div>
    );
  }
  return (
    <Field
      id={props.id}
      label={option.required ? trans.__('%1 (needed)', title) : title}
      help={option.description}
      error={props.error}
    >
      {input =>
        option.kind === 'enum' ? (
          <select
            {...input}
            className="jp-mod-styled"
            data-path={path}
            value={String(props.value)}
            onChange={event => props.onChange(event.target.value)}
          >
            {!option.required && (
              <option value="">{trans.__('Default')}</option>
            )}
            {option.enum?.map(choice => (
              <option key={choice} value={choice}>
                {choice}
              </option>
            ))}
          </select>
        ) : (
          <input
            {...input}
            className="jp-mod-styled"
            type={option.kind === 'integer' ? 'number' : 'text'}
            step={option.kind === 'integer' ? 'any' : undefined}
            placeholder={option.allowed}
            spellCheck={false}
            data-path={path}
            value={String(props.value)}
            onChange={event => props.onChange(event.target.value)}
          />
        )
      }
    </Field>
  );
}
