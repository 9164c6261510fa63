/** What a start would take: jobs, GPU-hours, how long it lasts, and what is free. */

import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import type { IAmounts } from './draft';
import type { ICapacity, IProfile, IScript } from '../model/tokens';
import { amount, gpuHours } from '../model/words';
import { useLoaded } from '../ui/loaded';

interface IStartSummaryProps {
  amounts: IAmounts;
  profile: IProfile;
  /** The server's newest answer; null before the first. */
  script: IScript | null;
  trans: TranslationBundle;
}

/** "8 GPUs = 2 jobs of 4, up to 4 GPU-hours. Keeps running without Jupyter: yes." */
export function StartSummary(props: IStartSummaryProps): JSX.Element {
  const { script, trans } = props;
  const jobs = jobWords(props);
  const hours = script?.gpu_hours_estimate ?? 0;
  return (
    <p className="jp-gpucluster-Summary" aria-live="polite">
      {jobs !== '' && (
        <strong>
          {hours > 0
            ? trans.__('%1, up to %2.', jobs, gpuHours(hours, trans))
            : trans.__('%1.', jobs)}
        </strong>
      )}
      {script?.survives !== undefined && (
        <span title={script.survival}>
          {script.survives
            ? trans.__('Keeps running without Jupyter: yes.')
            : trans.__('Keeps running without Jupyter? %1', script.survival)}
        </span>
      )}
    </p>
  );
}

interface ICapacityProps {
  profile: string;
  load: (profile: string) => Promise<ICapacity | null>;
  trans: TranslationBundle;
}

/** What is free now; nothing where nobody can tell. */
export function Capacity(props: ICapacityProps): JSX.Element | null {
  const { profile, trans } = props;
  const { value, failure } = useLoaded(
    async () => ({ profile, capacity: await props.load(profile) }),
    profile
  );
  if (failure !== null || value?.profile !== profile) {
    return null;
  }
  const { capacity } = value;
  const words = capacity?.words ?? '';
  if (capacity === null || (words === '' && capacity.partitions.length === 0)) {
    return null;
  }
  return (
    <p className="jp-gpucluster-Form-note">
      {words !== ''
        ? words
        : capacity.partitions
            .map(({ name, free, total, unit }) =>
              trans.__('%1: %2 of %3 %4 free', name, free, total, unit)
            )
            .join('; ')}
    </p>
  );
}

/** "You get 4 GPUs: a job has 4."; '' where one gets what was typed. */
export function wholeJobWords(
  amounts: IAmounts,
  profile: IProfile,
  trans: TranslationBundle
): string {
  const wanted = Number(amounts.adaptive ? amounts.maximum : amounts.workers);
  const each = Math.max(1, profile.gpus_per_job);
  if (!Number.isInteger(wanted) || wanted < 1 || wanted % each === 0) {
    return '';
  }
  const whole = amount(Math.ceil(wanted / each) * each, profile.unit, trans);
  return trans.__('You get %1: each job has %2.', whole, each);
}

/** The amount, and how it becomes jobs where a job holds several GPUs; '' while it is no number. */
function jobWords(props: IStartSummaryProps): string {
  const { amounts, profile, trans } = props;
  const wanted = Number(amounts.adaptive ? amounts.maximum : amounts.workers);
  if (!Number.isInteger(wanted) || wanted < 1) {
    return '';
  }
  const each = Math.max(1, profile.gpus_per_job);
  const jobs = Math.ceil(wanted / each);
  const whole = amount(jobs * each, profile.unit, trans);
  const words =
    each < 2
      ? whole
      : trans._n('%2 = %1 job of %3', '%2 = %1 jobs of %3', jobs, whole, each);
  return amounts.adaptive ? trans.__('At most %1', words) : words;
}
