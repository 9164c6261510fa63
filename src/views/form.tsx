/** The fields of the New GPU cluster dialog. */

import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import type { FieldErrors, IDraft } from '../draft';
import { draftFor, obstacles } from '../draft';
import type { IEnvironment, IProfile } from '../tokens';
import { amount } from '../words';
import type { IScriptPreview } from './script';
import { ScriptPreview } from './script';
import { AmountFields, Field, FieldError, OptionField } from './fields';

interface INewClusterFormProps {
  draft: IDraft;
  profiles: ReadonlyArray<IProfile>;
  /** Why the profiles could not be read; null where they could. */
  failure: Error | null;
  /** Null while they are being checked. */
  environments: ReadonlyArray<IEnvironment> | null;
  errors: FieldErrors;
  /** Null while the draft is wrong. */
  script: IScriptPreview | null;
  trans: TranslationBundle;
  onChange: (draft: IDraft) => void;
}

/** Profile, environment and amount first; the profile's own options and the name follow. */
export function NewClusterForm(props: INewClusterFormProps): JSX.Element {
  const { draft, errors, trans, onChange } = props;
  const profile = props.profiles.find(item => item.name === draft.profile);
  const form = React.useRef<HTMLFormElement>(null);
  // Runs after the effect of More, which uncovers a field that is wrong.
  React.useEffect(() => {
    const [path] = Object.keys(errors);
    form.current?.querySelector<HTMLElement>(`[data-path="${path}"]`)?.focus();
  }, [errors]);
  if (profile === undefined) {
    return (
      <p role="alert">
        {props.failure?.message ??
          trans.__('There is no profile to start a cluster from.')}
      </p>
    );
  }
  const options = (required: boolean): React.ReactNode =>
    Object.entries(profile.options)
      .filter(([, option]) => option.required === required)
      .map(([name, option]) => (
        <OptionField
          key={`${profile.name} ${name}`}
          id={`jp-gpucluster-new-option-${name}`}
          name={name}
          option={option}
          value={draft.options[name]}
          error={errors[`options.${name}`]}
          trans={trans}
          onChange={value =>
            onChange({ ...draft, options: { ...draft.options, [name]: value } })
          }
        />
      ));
  return (
    <form
      ref={form}
      className="jp-gpucluster-Form"
      onSubmit={event => event.preventDefault()}
    >
      {errors[''] && <FieldError text={errors['']} />}
      <ProfileChoice {...props} />
      <EnvironmentChoice {...props} profile={profile} />
      <AmountFields
        id="jp-gpucluster-new"
        amounts={draft.amounts}
        unit={profile.unit}
        errors={errors}
        trans={trans}
        onChange={amounts => onChange({ ...draft, amounts })}
      />
      <p className="jp-gpucluster-Form-note" aria-live="polite">
        {jobWords(draft, profile, trans)}
      </p>
      {options(true)}
      <More errors={errors} trans={trans}>
        {options(false)}
        <Field
          id="jp-gpucluster-new-name"
          label={trans.__('Name')}
          error={errors['name']}
        >
          {input => (
            <input
              {...input}
              className="jp-mod-styled"
              type="text"
              spellCheck={false}
              data-path="name"
              placeholder={trans.__('chosen for you')}
              value={draft.name}
              onChange={event =>
                onChange({ ...draft, name: event.target.value })
              }
            />
          )}
        </Field>
      </More>
      <ScriptPreview script={props.script} trans={trans} />
    </form>
  );
}

/** What can be left as it is; opens by itself when something in it is wrong. */
function More(props: {
  errors: FieldErrors;
  trans: TranslationBundle;
  children: React.ReactNode;
}): JSX.Element {
  const details = React.useRef<HTMLDetailsElement>(null);
  React.useEffect(() => {
    if (details.current?.querySelector('[role="alert"]')) {
      details.current.open = true;
    }
  }, [props.errors]);
  return (
    <details ref={details} className="jp-gpucluster-More">
      <summary>{props.trans.__('More options')}</summary>
      <div className="jp-gpucluster-More-fields">{props.children}</div>
    </details>
  );
}

function ProfileChoice(props: INewClusterFormProps): JSX.Element {
  const { draft, errors, trans } = props;
  return (
    <fieldset className="jp-gpucluster-Choice">
      <legend>{trans.__('Profile')}</legend>
      {props.profiles.map(profile => (
        <label key={profile.name} className="jp-gpucluster-Choice-item">
          <input
            type="radio"
            name="jp-gpucluster-new-profile"
            data-path="profile"
            checked={profile.name === draft.profile}
            onChange={() => props.onChange(draftFor(profile, draft))}
          />
          <span>
            <span className="jp-gpucluster-Choice-title">
              {profile.title || profile.name}
            </span>
            <span className="jp-gpucluster-Choice-words">
              {profile.words || profile.summary}
            </span>
          </span>
        </label>
      ))}
      {errors['profile'] && <FieldError text={errors['profile']} />}
    </fieldset>
  );
}

function EnvironmentChoice(
  props: INewClusterFormProps & { profile: IProfile }
): JSX.Element {
  const { draft, environments, errors, trans } = props;
  const choices = environments?.map(item => ({
    ...item,
    obstacles: obstacles(item, props.profile)
  }));
  const none =
    choices !== undefined && choices.every(item => item.obstacles.length > 0);
  return (
    <Field
      id="jp-gpucluster-new-kernel"
      label={trans.__('Environment')}
      help={
        none
          ? trans.__(
              'None of the kernels here can run a cluster: each lacks what its line names.'
            )
          : trans.__('Scheduler, workers and your notebook share it.')
      }
      error={errors['kernel']}
    >
      {input => (
        <select
          {...input}
          className="jp-mod-styled"
          data-path="kernel"
          value={draft.environment}
          disabled={environments === null}
          onChange={event =>
            props.onChange({ ...draft, environment: event.target.value })
          }
        >
          {environments === null && (
            <option value="">{trans.__('Checking the kernels…')}</option>
          )}
          {none && <option value="">{trans.__('No suitable kernel')}</option>}
          {choices?.map(item => (
            <option
              key={item.name}
              value={item.name}
              disabled={item.obstacles.length > 0}
            >
              {item.obstacles.length === 0
                ? item.title
                : trans.__('%1: %2', item.title, item.obstacles.join(' '))}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

/** How the amount becomes jobs, where a job holds several GPUs. */
function jobWords(
  draft: IDraft,
  profile: IProfile,
  trans: TranslationBundle
): string {
  const wanted = Number(
    draft.amounts.adaptive ? draft.amounts.maximum : draft.amounts.workers
  );
  const each = profile.gpus_per_job;
  if (each < 2 || !Number.isInteger(wanted) || wanted < 1) {
    return '';
  }
  const jobs = Math.ceil(wanted / each);
  return trans._n(
    '%2 = %1 job of %3',
    '%2 = %1 jobs of %3',
    jobs,
    amount(jobs * each, profile.unit, trans),
    each
  );
}
