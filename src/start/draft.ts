/** What the New GPU cluster dialog holds, checks and sends. */

import type { TranslationBundle } from '@jupyterlab/translation';

import type {
  ICluster,
  IEnvironment,
  IOption,
  IOptionsSchema,
  IProfile,
  IScriptRequest,
  IStartRequest,
  OptionValue,
  TargetRequest
} from '../model/tokens';
import { faultsOf } from './validator';

/** Amounts as typed, so that unfinished input stays as it is. */
export interface IAmounts {
  adaptive: boolean;
  workers: string;
  minimum: string;
  maximum: string;
}

/** The dialog's fields as typed. */
export interface IDraft {
  profile: string;
  environment: string;
  name: string;
  amounts: IAmounts;
  /** Empty text stands for what is not given. */
  options: Record<string, OptionValue>;
}

/** Message per field, by the path under which the server knows it; '' stands for the whole form. */
export type FieldErrors = Readonly<Record<string, string>>;

/**
 * The profile to offer first: the one asked for, the site's default, one for this host, the last one, any.
 *
 * @param inside - whether Jupyter runs in a batch job, whose own GPUs come first
 */
export function preferredProfile(
  profiles: ReadonlyArray<IProfile>,
  wanted?: string,
  last?: string,
  inside = false
): IProfile | undefined {
  const usable = profiles.filter(profile => profile.unusable === '');
  const here = inside ? usable.filter(usesThisMachine) : [];
  const first = here.length > 0 ? here : usable;
  return (
    profiles.find(profile => profile.name === wanted) ??
    first.find(profile => profile.default) ??
    first.find(profile => profile.matches_host) ??
    first.find(profile => profile.name === last) ??
    first[0]
  );
}

/** Whether a cluster's workers take what the machine or the job of Jupyter has. */
export function usesThisMachine(profile: IProfile): boolean {
  return profile.backend === 'local';
}

/** What keeps an environment from running a profile's workers; empty where nothing does. */
export function obstacles(
  environment: IEnvironment,
  profile: Pick<IProfile, 'unit' | 'simulated'>
): string[] {
  return [
    ...(environment.suitable ? [] : environment.problems),
    ...(profile.unit === 'GPUs' && !profile.simulated
      ? environment.gpu_problems
      : [])
  ];
}

/** The first wanted environment that can run a profile's workers, else any that can. */
export function preferredEnvironment(
  environments: ReadonlyArray<IEnvironment>,
  profile: Pick<IProfile, 'unit' | 'simulated'>,
  wanted: ReadonlyArray<string>
): string {
  const suitable = environments
    .filter(environment => obstacles(environment, profile).length === 0)
    .map(environment => environment.name);
  return wanted.find(name => suitable.includes(name)) ?? suitable[0] ?? '';
}

/** A draft with the profile's own defaults; name and environment are kept. */
export function draftFor(profile: IProfile, kept?: IDraft): IDraft {
  const workers = String(profile.default_workers);
  return {
    profile: profile.name,
    environment: kept?.environment ?? '',
    name: kept?.name ?? '',
    amounts: { adaptive: false, workers, minimum: '0', maximum: workers },
    options: Object.fromEntries(
      Object.entries(profile.options.properties).map(([name, option]) => [
        name,
        option.default ?? (option.type === 'boolean' ? false : '')
      ])
    )
  };
}

/** The cluster that was started last from a profile, or from any. */
export function newestOf(
  clusters: ReadonlyArray<ICluster>,
  profile?: string
): ICluster | undefined {
  return clusters
    .filter(item => profile === undefined || item.profile === profile)
    .reduce<ICluster | undefined>(
      (newest, item) =>
        newest === undefined || item.created > newest.created ? item : newest,
      undefined
    );
}

/** A draft with what another cluster of the profile was started with; the name is kept. */
export function draftLike(
  cluster: ICluster,
  profile: IProfile,
  kept?: IDraft
): IDraft {
  const draft = draftFor(profile, kept);
  const options = { ...draft.options };
  for (const [name, value] of Object.entries(cluster.options)) {
    if (Object.hasOwn(options, name)) {
      options[name] = typed(profile.options.properties[name], value);
    }
  }
  return { ...draft, amounts: amountsOf(cluster), options };
}

/** What a cluster was asked for last, as typed. */
export function amountsOf(cluster: ICluster): IAmounts {
  const { minimum, maximum } = cluster.target;
  return {
    adaptive: minimum !== maximum,
    workers: String(maximum),
    minimum: String(minimum),
    maximum: String(maximum)
  };
}

/** What can be told wrong without asking the server. */
export function check(
  draft: IDraft,
  profile: IProfile,
  trans: TranslationBundle
): FieldErrors {
  return {
    ...checkAmounts(draft.amounts, profile.limits.workers, trans),
    ...checkOptions(draft, profile.options, trans)
  };
}

/** A cluster's name in our server's rules. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$/;

/** What is wrong with a name. */
export function checkName(
  name: string,
  taken: ReadonlyArray<string>,
  trans: TranslationBundle
): FieldErrors {
  const wanted = name.trim();
  if (wanted !== '' && !NAME.test(wanted)) {
    return {
      name: trans.__(
        'Use letters, digits and . _ - (at most 63), with a letter or digit first.'
      )
    };
  }
  return taken.includes(wanted)
    ? { name: trans.__('A cluster of this name is running.') }
    : {};
}

/** A draft for a trial: what is known to be wrong gives way to the profile's defaults. */
export function trialOf(
  draft: IDraft,
  profile: IProfile,
  errors: FieldErrors
): IDraft {
  const { amounts, options } = draftFor(profile, draft);
  const wrong = Object.keys(errors);
  return {
    ...draft,
    amounts: wrong.some(path => path.startsWith('target.'))
      ? amounts
      : draft.amounts,
    options: Object.fromEntries(
      Object.entries(draft.options).map(([name, value]) => [
        name,
        wrong.includes(`options.${name}`) ? options[name] : value
      ])
    )
  };
}

/** What the schema of a profile's options refuses. */
export function checkOptions(
  draft: IDraft,
  schema: IOptionsSchema,
  trans: TranslationBundle
): FieldErrors {
  return Object.fromEntries(
    Object.entries(faultsOf(schema, given(draft.options))).map(
      ([name, keyword]) => [
        `options.${name}`,
        keyword === 'required'
          ? trans.__('Required.')
          : trans.__('Give %1.', schema.properties[name]?.allowed ?? '')
      ]
    )
  );
}

/** What is wrong with amounts; keys are paths in a request. */
export function checkAmounts(
  amounts: IAmounts,
  limit: number | null,
  trans: TranslationBundle
): Record<string, string> {
  const errors: Record<string, string> = {};
  const problem = (text: string, least: number): string | null => {
    const n = wholeNumber(text);
    if (n === null || n < least) {
      return trans.__('Enter %1 or more.', least);
    }
    return limit !== null && n > limit
      ? trans.__('This profile allows at most %1.', limit)
      : null;
  };
  const note = (path: string, text: string | null) => {
    if (text !== null) {
      errors[path] = text;
    }
  };
  if (!amounts.adaptive) {
    note('target.workers', problem(amounts.workers, 1));
    return errors;
  }
  note('target.minimum', problem(amounts.minimum, 0));
  note('target.maximum', problem(amounts.maximum, 1));
  if (
    Object.keys(errors).length === 0 &&
    Number(amounts.minimum) > Number(amounts.maximum)
  ) {
    errors['target.maximum'] = trans.__('At least as many as the minimum.');
  }
  return errors;
}

/** The request that checked amounts stand for. */
export function targetOf(amounts: IAmounts): TargetRequest {
  return amounts.adaptive
    ? { minimum: Number(amounts.minimum), maximum: Number(amounts.maximum) }
    : { workers: Number(amounts.workers) };
}

/** The request that a checked draft stands for; fields left empty are left out. */
export function requestOf(draft: IDraft, requestId: string): IStartRequest {
  return {
    profile: draft.profile,
    target: targetOf(draft.amounts),
    ...placeOf(draft),
    request_id: requestId,
    ...(draft.name.trim() === '' ? {} : { name: draft.name.trim() })
  };
}

/** The request for the script of a checked draft. */
export function scriptRequestOf(draft: IDraft): IScriptRequest {
  return { ...targetOf(draft.amounts), ...placeOf(draft) };
}

function placeOf(draft: IDraft): {
  options: Record<string, OptionValue>;
  kernel?: string;
} {
  const options = given(draft.options);
  return draft.environment === ''
    ? { options }
    : { options, kernel: draft.environment };
}

function given(
  options: Readonly<Record<string, OptionValue>>
): Record<string, OptionValue> {
  return Object.fromEntries(
    Object.entries(options).filter(
      ([, value]) => typeof value !== 'string' || value.trim() !== ''
    )
  );
}

/** A value on record as the form holds it; a command line has left text of everything. */
function typed(option: IOption, value: OptionValue): OptionValue {
  const text = String(value).trim().toLowerCase();
  switch (option.type) {
    case 'boolean':
      return ['true', 'yes', '1'].includes(text);
    case 'integer':
      return /^[+-]?\d+$/.test(text) ? Number(text) : text;
    default:
      return String(value);
  }
}

function wholeNumber(text: string): number | null {
  return /^-?\d{1,9}$/.test(text.trim()) ? Number(text) : null;
}
