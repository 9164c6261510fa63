/** How a cluster is, in the lines of its card. */

import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { phaseIcons } from './icons';
import type { ICluster, IGpuReading } from '../model/tokens';
import {
  bytes,
  duration,
  exactMoment,
  isEnded,
  isQueued,
  lossCause,
  lossWords,
  moment,
  nextEnd,
  phaseWord,
  gpuHours
} from '../model/words';
import { Button } from './button';

/** When the end of a cluster is near enough to be said aloud. */
const SOON_SECONDS = 600;

interface ILineProps {
  cluster: ICluster;
  trans: TranslationBundle;
}

interface ITimedProps extends ILineProps {
  /** Epoch seconds. */
  now: number;
}

/** The last loss, before everything else: "demo01 failed at 08:15: 4 GPUs lost …". */
export function LossLine(
  props: ILineProps & { onDismiss?: () => void }
): JSX.Element | null {
  const { cluster, onDismiss, trans } = props;
  const { loss } = cluster;
  if (!loss || isEnded(cluster.phase)) {
    return null;
  }
  const cause = lossCause(loss);
  return (
    <div className="jp-gpucluster-Card-loss" role="note">
      <p>{lossWords(loss, trans)}</p>
      {cause !== '' && <p className="jp-gpucluster-Card-cause">{cause}</p>}
      {onDismiss && (
        <Button
          label={trans.__('Dismiss')}
          name={trans.__('Dismiss the loss of %1', cluster.name)}
          onClick={onDismiss}
        />
      )}
    </div>
  );
}

/** "Waiting 3 min: partition full"; "Running for 5 min, 6 of 8 GPUs ready". */
export function PhaseLine(props: ITimedProps): JSX.Element {
  const { cluster, trans } = props;
  const PhaseIcon = phaseIcons[cluster.phase].react;
  const since = cluster.ended ?? cluster.phase_since;
  const span = duration(props.now - since, trans);
  const queued = isQueued(cluster);
  return (
    <div className="jp-gpucluster-Card-phase">
      <PhaseIcon tag="span" aria-hidden="true" width="16px" />
      <p>
        <strong>{phaseWord(cluster.phase, trans)}</strong>{' '}
        {isEnded(cluster.phase)
          ? trans.__('at %1', moment(since))
          : queued && cluster.reason !== ''
            ? trans.__('%1: %2', span, lowered(cluster.reason))
            : trans.__('for %1', span)}
        {!queued && !isEnded(cluster.phase) && isTelling(cluster) && (
          <>
            {' '}
            <span className="jp-gpucluster-Card-words">
              {sentence(cluster.words)}
            </span>
          </>
        )}
      </p>
    </div>
  );
}

/** Why it is as it is: the first line says it, the rest is evidence. */
export function Reasons(props: ILineProps): JSX.Element {
  const { cluster, trans } = props;
  const told = isQueued(cluster) ? '' : cluster.reason;
  const [first, ...rest] = told.split('\n');
  return (
    <>
      {first !== '' && <p className="jp-gpucluster-Card-reason">{first}</p>}
      {rest.length > 0 && (
        <pre className="jp-gpucluster-Card-evidence">{rest.join('\n')}</pre>
      )}
      {cluster.stale_since !== null && (
        <p className="jp-gpucluster-Card-reason">
          {trans.__(
            'The batch system has not answered since %1; this may be out of date.',
            moment(cluster.stale_since)
          )}
        </p>
      )}
    </>
  );
}

export function Badges(props: ILineProps): JSX.Element | null {
  const { cluster, trans } = props;
  const badges = [
    cluster.simulated && trans.__('simulation'),
    !cluster.encrypted && trans.__('not encrypted'),
    !isEnded(cluster.phase) &&
      !cluster.survives &&
      trans.__('ends with Jupyter')
  ].filter(badge => badge !== false);
  return badges.length === 0 ? null : (
    <ul className="jp-gpucluster-Badges" aria-label={trans.__('Remarks')}>
      {badges.map(badge => (
        <li key={badge} className="jp-gpucluster-Badge">
          {badge}
        </li>
      ))}
    </ul>
  );
}

/** What it holds and uses, and what ends it first. */
export function Readings(props: ITimedProps): JSX.Element {
  const { cluster, trans } = props;
  const live = !isEnded(cluster.phase);
  const end = nextEnd(cluster);
  const lines = [
    live && isQueued(cluster) && cluster.listed
      ? trans.__('Queue as of %1', exactMoment(cluster.listed))
      : '',
    live && isQueued(cluster) && cluster.expected_start !== null
      ? trans.__('May start at %1', moment(cluster.expected_start))
      : '',
    live ? pulseWords(cluster, trans) : '',
    live ? memoryWords(cluster, trans) : '',
    live ? gpuWords(cluster.gpus, trans) : '',
    spentWords(cluster, trans)
  ].filter(line => line !== '');
  return (
    <>
      {lines.map(line => (
        <p key={line} className="jp-gpucluster-Card-reading">
          {line}
        </p>
      ))}
      {live && end !== null && (
        <p
          className="jp-gpucluster-Card-end"
          data-soon={end.ends - props.now < SOON_SECONDS}
        >
          {trans.__('Ends at %1 (%2)', moment(end.ends), end.name)}
        </p>
      )}
    </>
  );
}

/** "Tasks: 213 of 410 done, threads 97 % busy"; '' without tasks. */
function pulseWords(cluster: ICluster, trans: TranslationBundle): string {
  const { tasks, tasks_done, busy } = cluster;
  // A server that was not restarted after an update does not report them.
  if (!tasks) {
    return '';
  }
  const done = trans.__('Tasks: %1 of %2 done', tasks_done, tasks);
  return busy === null || tasks_done === tasks
    ? done
    : trans.__('%1, threads %2 % busy', done, Math.round(100 * busy));
}

function spentWords(cluster: ICluster, trans: TranslationBundle): string {
  if (cluster.gpu_hours < 0.05) {
    return '';
  }
  const spent = gpuHours(cluster.gpu_hours, trans);
  if (isEnded(cluster.phase)) {
    return spent;
  }
  const most = cluster.gpu_hours_estimate;
  // Jobs that follow others were not foreseen.
  return most === null || most < cluster.gpu_hours
    ? trans.__('%1 so far', spent)
    : trans.__('%1 so far, at most %2', spent, Math.round(most));
}

function memoryWords(cluster: ICluster, trans: TranslationBundle): string {
  if (cluster.memory_limit === 0) {
    return cluster.memory_used === 0
      ? ''
      : trans.__('Memory: %1', bytes(cluster.memory_used));
  }
  return trans.__(
    'Memory: %1 of %2',
    bytes(cluster.memory_used),
    bytes(cluster.memory_limit)
  );
}

/** Several GPUs in one line: the mean of their use, the sum of their memory. */
function gpuWords(
  gpus: ReadonlyArray<IGpuReading>,
  trans: TranslationBundle
): string {
  const busy = gpus.map(gpu => gpu.utilization).filter(value => value !== null);
  const total = sumOf(gpus, gpu => gpu.memory_total);
  const parts = [
    busy.length > 0
      ? trans.__('%1 % busy', Math.round(sumOf(busy, n => n) / busy.length))
      : '',
    total > 0
      ? trans.__(
          '%1 of %2',
          bytes(sumOf(gpus, gpu => gpu.memory_used)),
          bytes(total)
        )
      : ''
  ].filter(part => part !== '');
  return parts.length === 0 ? '' : trans.__('GPUs: %1', parts.join(', '));
}

function sumOf<T>(items: ReadonlyArray<T>, read: (item: T) => number): number {
  return items.reduce((sum, item) => sum + read(item), 0);
}

/** Whether the words say more than the phase. */
function isTelling(cluster: ICluster): boolean {
  return cluster.words !== '' && cluster.words !== cluster.phase;
}

function sentence(words: string): string {
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** A sentence as the second half of another; one that begins with an abbreviation stays. */
function lowered(words: string): string {
  return /^[A-Z][a-z ]/.test(words)
    ? words.charAt(0).toLowerCase() + words.slice(1)
    : words;
}
