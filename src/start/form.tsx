/** The fields of the New GPU cluster dialog. */

import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { ApiError } from '../model/api';
import { errorsOf, fieldsOf } from './blame';
import type { FieldErrors, IDraft } from './draft';
import { checkAmounts, checkName, checkOptions } from './draft';
import { groupsOf } from './inside';
import type {
  ICapacity,
  IEnvironment,
  IInside,
  ILiveValues,
  IProfile
} from '../model/tokens';
import { EnvironmentChoice } from './environment';
import { AmountFields, Field, FieldError } from './fields';
import { useLoaded, useSettled } from '../ui/loaded';
import { foundProfiles, MANY_PROFILES, SearchField } from '../ui/search';
import { isFirst, OptionFields } from './options';
import type { IScriptPreview } from '../ui/script';
import { ScriptPreview } from '../ui/script';
import { Capacity, StartSummary, wholeJobWords } from './summary';

const TYPING_MS = 400;

interface INewClusterFormProps {
  draft: IDraft;
  profiles: ReadonlyArray<IProfile>;
  /** The batch job that Jupyter runs in; null outside of jobs. */
  inside: IInside | null;
  /** Why the profiles could not be read; null where they could. */
  failure: Error | null;
  /** Null while they are being checked. */
  environments: ReadonlyArray<IEnvironment> | null;
  errors: FieldErrors;
  /** Names of clusters that live. */
  taken: string[];
  /** Of the draft; where the browser knows a field to be wrong, with the profile's default for it. */
  script: IScriptPreview | null;
  /** The names that the batch system reports for the options of a profile. */
  values: (profile: string) => Promise<ILiveValues>;
  capacity: (profile: string) => Promise<ICapacity | null>;
  /** A draft for another profile that keeps what it can. */
  draftFor: (profile: IProfile) => IDraft;
  trans: TranslationBundle;
  /** Told how to change the draft as it is then, which may be newer than the one that is drawn. */
  onChange: (edit: (draft: IDraft) => IDraft) => void;
}

/** Profile, environment and amount first; the profile's own options and the name follow. */
export function NewClusterForm(props: INewClusterFormProps): JSX.Element {
  const { draft, script, trans, onChange } = props;
  const profile = props.profiles.find(item => item.name === draft.profile);
  const form = React.useRef<HTMLFormElement>(null);
  const trial = useLoaded(
    () => script?.load() ?? Promise.resolve(null),
    script?.key ?? '',
    TYPING_MS
  );
  const live = useLiveValues(profile, props.values);
  const settled = useSettled(draft, TYPING_MS);
  // What the server finds in the fields as they are, until something is sent.
  const told =
    trial.failure instanceof ApiError && trial.failure.status === 422
      ? errorsOf(trial.failure, fieldsOf(draft))
      : {};
  const wrong =
    settled && profile !== undefined
      ? {
          ...checkOptions(draft, { ...profile.options, required: [] }, trans),
          ...checkAmounts(draft.amounts, profile.limits.workers, trans),
          ...checkName(draft.name, props.taken, trans)
        }
      : {};
  const errors = { ...wrong, ...told, ...props.errors };
  // Runs after the effect of More, which uncovers a field that is wrong.
  React.useEffect(() => {
    const [path] = Object.keys(props.errors);
    const field = form.current?.querySelector<HTMLElement>(
      `[data-path="${path}"]`
    );
    field?.focus();
    // What is wrong stands below the field, where the summary would cover it.
    field
      ?.closest('.jp-gpucluster-Field')
      ?.scrollIntoView?.({ block: 'center' });
  }, [props.errors]);
  if (profile === undefined) {
    return (
      <p role="alert">
        {props.failure?.message ??
          trans.__('There is no profile to start a cluster from.')}
      </p>
    );
  }
  const options = (first: boolean): JSX.Element => (
    <OptionFields
      key={profile.name}
      schema={profile.options}
      first={first}
      values={draft.options}
      live={live}
      errors={errors}
      trans={trans}
      onChange={values =>
        onChange(now => ({ ...now, options: { ...now.options, ...values } }))
      }
    />
  );
  const kept = [
    'name',
    ...Object.keys(profile.options.properties)
      .filter(name => !isFirst(name, profile.options))
      .map(name => `options.${name}`)
  ];
  return (
    <form
      ref={form}
      className="jp-gpucluster-Form"
      onSubmit={event => event.preventDefault()}
    >
      {errors[''] && <FieldError text={errors['']} />}
      <ProfileChoice {...props} errors={errors} />
      <EnvironmentChoice
        profile={profile}
        environments={props.environments}
        chosen={draft.environment}
        error={errors['kernel']}
        trans={trans}
        onChange={environment => onChange(now => ({ ...now, environment }))}
      />
      <AmountFields
        id="jp-gpucluster-new"
        amounts={draft.amounts}
        unit={profile.unit}
        help={wholeJobWords(draft.amounts, profile, trans)}
        errors={errors}
        trans={trans}
        onChange={amounts => onChange(now => ({ ...now, amounts }))}
      />
      <Capacity profile={profile.name} load={props.capacity} trans={trans} />
      {options(true)}
      <More wrong={kept.some(path => path in errors)} trans={trans}>
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
              onChange={event => {
                const name = event.target.value;
                onChange(now => ({ ...now, name }));
              }}
            />
          )}
        </Field>
      </More>
      <ScriptPreview
        complete={script !== null && Object.keys(errors).length === 0}
        loaded={trial}
        trans={trans}
      />
      <StartSummary
        amounts={draft.amounts}
        profile={profile}
        script={trial.value}
        trans={trans}
      />
    </form>
  );
}

/** What the batch system reports for the profile's options; null where it is not asked or silent. */
function useLiveValues(
  profile: IProfile | undefined,
  load: (profile: string) => Promise<ILiveValues>
): ILiveValues | null {
  const name = profile?.name ?? '';
  const wanted = Object.values(profile?.options.properties ?? {}).some(
    option => option.values !== undefined
  );
  const { value } = useLoaded(
    async () => ({ name, live: await load(name) }),
    wanted ? name : ''
  );
  return value?.name === name && value.live.asked > 0 ? value.live : null;
}

/** What can be left as it is; opens by itself when something in it is wrong. */
function More(props: {
  wrong: boolean;
  trans: TranslationBundle;
  children: React.ReactNode;
}): JSX.Element {
  const details = React.useRef<HTMLDetailsElement>(null);
  React.useEffect(() => {
    if (props.wrong && details.current !== null) {
      details.current.open = true;
    }
  });
  return (
    <details ref={details} className="jp-gpucluster-More">
      <summary>{props.trans.__('More options')}</summary>
      <div className="jp-gpucluster-More-fields">{props.children}</div>
    </details>
  );
}

function ProfileChoice(props: INewClusterFormProps): JSX.Element {
  const { errors, trans } = props;
  const choice = React.useRef<HTMLFieldSetElement>(null);
  const [wanted, setWanted] = React.useState('');
  React.useEffect(() => {
    choice.current
      ?.querySelector('input:checked')
      ?.closest('label')
      ?.scrollIntoView?.({ block: 'nearest' });
  }, []);
  return (
    <fieldset ref={choice} className="jp-gpucluster-Choice">
      <legend>{trans.__('Profile')}</legend>
      {props.profiles.length > MANY_PROFILES && (
        <SearchField
          label={trans.__('Search profiles')}
          value={wanted}
          onChange={setWanted}
        />
      )}
      {groupsOf(foundProfiles(props.profiles, wanted), props.inside, trans).map(
        ({ heading, profiles }) => (
          <div key={heading} role="group" aria-label={heading || undefined}>
            {heading !== '' && (
              <p className="jp-gpucluster-Choice-heading">{heading}</p>
            )}
            {profiles.map(profile => (
              <ProfileItem key={profile.name} profile={profile} {...props} />
            ))}
          </div>
        )
      )}
      {errors['profile'] && <FieldError text={errors['profile']} />}
    </fieldset>
  );
}

function ProfileItem(
  props: INewClusterFormProps & { profile: IProfile }
): JSX.Element {
  const { profile, draft, trans } = props;
  const chosen = profile.name === draft.profile;
  const [words, more] =
    profile.unusable !== ''
      ? [profile.unusable, '']
      : profile.summary === ''
        ? [profile.words, '']
        : [profile.summary, chosen ? profile.words : ''];
  return (
    <label className="jp-gpucluster-Choice-item">
      <input
        type="radio"
        name="jp-gpucluster-new-profile"
        data-path="profile"
        disabled={profile.unusable !== ''}
        checked={chosen}
        onChange={() => props.onChange(() => props.draftFor(profile))}
      />
      <span>
        <span className="jp-gpucluster-Choice-title">
          {profile.title || profile.name}
          {profile.encrypted === false && (
            <>
              {' '}
              <span className="jp-gpucluster-Badge">
                {trans.__('not encrypted')}
              </span>
            </>
          )}
        </span>
        <span className="jp-gpucluster-Choice-words">{words}</span>
        {more !== '' && (
          <span className="jp-gpucluster-Choice-words">{more}</span>
        )}
      </span>
    </label>
  );
}
