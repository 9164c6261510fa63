/** Which field of the dialog a failure is about. */

import { ApiError, asError } from '../model/api';
import type { FieldErrors, IDraft } from './draft';
import type { ICluster, IProfile } from '../model/tokens';

/** Where the dialog shows a request that failed: beside the field it names, else on top. */
export function errorsOf(
  error: unknown,
  fields: ReadonlyArray<string>
): FieldErrors {
  const text =
    error instanceof ApiError && error.hint !== ''
      ? `${error.message} ${error.hint}`
      : asError(error).message;
  if (error instanceof ApiError && error.status < 500) {
    const path = error.detail === 'target' ? 'target.workers' : error.detail;
    const field =
      fields.find(name => name === path) ??
      fields.find(name => name === `options.${path}`);
    if (field !== undefined) {
      return { [field]: text };
    }
  }
  return { '': text };
}

/** The fields that a draft shows, by their paths in a request. */
export function fieldsOf(draft: IDraft): string[] {
  const amounts = draft.amounts.adaptive
    ? ['target.minimum', 'target.maximum']
    : ['target.workers'];
  return [
    'profile',
    'kernel',
    ...amounts,
    'name',
    ...Object.keys(draft.options).map(name => `options.${name}`)
  ];
}

/**
 * The field to look at after a cluster has failed, by its path; '' where nothing points at one.
 *
 * @param states - the states of its jobs, newest last
 */
export function suspectOf(
  cluster: ICluster,
  states: ReadonlyArray<string>,
  profile: IProfile
): string {
  const options = Object.entries(profile.options.properties);
  const ofKind = (kind: string): string | undefined =>
    options.find(([, option]) => option.kind === kind)?.[0];
  const last = states.at(-1);
  const said = (word: string): boolean =>
    word !== '' &&
    new RegExp(`(^|[^\\w])${escaped(word)}([^\\w]|$)`, 'i').test(
      cluster.reason
    );
  const name =
    (last === 'out_of_memory' ? ofKind('memory') : undefined) ??
    (last === 'timeout' ? ofKind('duration') : undefined) ??
    options.find(([key, option]) => said(key) || said(option.title))?.[0];
  return name === undefined ? '' : `options.${name}`;
}

function escaped(word: string): string {
  return word.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}
