/** The choice of the Python that a cluster runs in, with what was found out about each. */

import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { obstacles } from './draft';
import type { IEnvironment, IProfile } from '../model/tokens';
import { Field } from './fields';

/** What a user compares first, in this order. */
const SHOWN_VERSIONS = [
  ['python', 'Python'],
  ['dask', 'dask'],
  ['distributed', 'distributed'],
  ['dask_cuda', 'dask-cuda']
] as const;

interface IEnvironmentChoiceProps {
  profile: Pick<IProfile, 'unit' | 'simulated'>;
  /** Null while they are being checked. */
  environments: ReadonlyArray<IEnvironment> | null;
  chosen: string;
  error?: string;
  trans: TranslationBundle;
  onChange: (environment: string) => void;
}

/** Those that can run the profile's workers; the others are listed below with the reason. */
export function EnvironmentChoice(props: IEnvironmentChoiceProps): JSX.Element {
  const { environments, profile, trans } = props;
  const fit = environments?.filter(
    item => obstacles(item, profile).length === 0
  );
  const unfit = environments?.filter(
    item => obstacles(item, profile).length > 0
  );
  const chosen = fit?.find(item => item.name === props.chosen);
  return (
    <>
      <Field
        id="jp-gpucluster-new-kernel"
        label={trans.__('Environment')}
        help={
          chosen === undefined
            ? trans.__('Scheduler, workers and your notebook share it.')
            : trans.__('Checked: %1', versionWords(chosen))
        }
        error={props.error}
      >
        {input => (
          <select
            {...input}
            className="jp-mod-styled"
            data-path="kernel"
            value={props.chosen}
            disabled={environments === null}
            onChange={event => props.onChange(event.target.value)}
          >
            {environments === null && (
              <option value="">{trans.__('Checking the kernels…')}</option>
            )}
            {fit?.length === 0 && (
              <option value="">{trans.__('No suitable kernel')}</option>
            )}
            {fit?.map(item => (
              <option key={item.name} value={item.name}>
                {item.title}
              </option>
            ))}
          </select>
        )}
      </Field>
      {unfit !== undefined && unfit.length > 0 && (
        <details className="jp-gpucluster-More" open={fit?.length === 0}>
          <summary>
            {trans._n(
              '%1 kernel cannot run this cluster',
              '%1 kernels cannot run this cluster',
              unfit.length
            )}
          </summary>
          <ul className="jp-gpucluster-Obstacles">
            {unfit.map(item => (
              <li key={item.name}>
                <strong>{item.title}</strong>:{' '}
                {obstacles(item, profile).join(' ')}
              </li>
            ))}
          </ul>
        </details>
      )}
    </>
  );
}

function versionWords(environment: IEnvironment): string {
  return SHOWN_VERSIONS.filter(
    ([name]) => environment.versions[name] !== undefined
  )
    .map(([name, shown]) => `${shown} ${environment.versions[name]}`)
    .join(', ');
}
