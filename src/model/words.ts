/** Phases, amounts, sizes and times in the words that a user sees. */

import type { TranslationBundle } from '@jupyterlab/translation';

import type { ICluster, ILoss, ITarget, Phase, TargetRequest } from './tokens';

const ENDED: ReadonlySet<Phase> = new Set(['stopped', 'failed']);

/** A batch system takes a minute to end a job whose processes do not go by themselves. */
const STUCK_SECONDS = 120;

/** Whether nothing leaves this phase any more. */
export function isEnded(phase: Phase): boolean {
  return ENDED.has(phase);
}

/** Whether a cluster can still be asked to change. */
export function isSteerable(phase: Phase): boolean {
  return !isEnded(phase) && phase !== 'stopping';
}

/** Whether it was started here; one that somebody else started can only be looked at. */
export function isOurs(cluster: ICluster): boolean {
  return cluster.backend !== 'existing';
}

/** Its name, where nothing beside it says that it is a simulation. */
export function shownName(cluster: ICluster, trans: TranslationBundle): string {
  return cluster.simulated
    ? trans.__('%1 (simulation)', cluster.name)
    : cluster.name;
}

/** Whether it has been told to stop for so long that nobody may be there to do it. */
export function isStuck(cluster: ICluster, now: number): boolean {
  return (
    cluster.phase === 'stopping' && now - cluster.phase_since > STUCK_SECONDS
  );
}

/** Why the dashboard of a cluster that somebody else started is not to be seen. */
export function foreignDashboard(trans: TranslationBundle): string {
  return trans.__(
    'Another user started this cluster; its dashboard would run code of its own in this page. A profile that trusts it says so (existing.trust_dashboard).'
  );
}

/** Whether clients can reach the cluster's scheduler. */
export function isConnectable(cluster: ICluster): boolean {
  return isSteerable(cluster.phase) && cluster.scheduler_address !== '';
}

/** Whether all it does is wait for its first worker. */
export function isQueued(cluster: ICluster): boolean {
  return cluster.phase === 'pending' && cluster.workers.ready === 0;
}

export interface IEnd {
  name: string;
  ends: number;
  /** Whether it is the time-out of an idle cluster, which may be kept. */
  idle: boolean;
}

/** What ends a cluster first, not one job of it; null where nothing does by itself. */
export function nextEnd(cluster: ICluster): IEnd | null {
  return cluster.clocks.reduce<IEnd | null>(
    (first, { name, ends, job, kind }) =>
      ends !== null && !job && (first === null || ends < first.ends)
        ? { name, ends, idle: kind === 'idle' }
        : first,
    null
  );
}

/** "42 min left": until it ends by itself; '' where nothing ends it. */
export function leftWords(
  cluster: ICluster,
  now: number,
  trans: TranslationBundle
): string {
  const end = isEnded(cluster.phase) ? null : nextEnd(cluster);
  return end === null
    ? ''
    : trans.__('%1 left', duration(end.ends - now, trans));
}

/** "quiet-fox: Running, 2 GPUs ready, 42 min left". */
export function clusterWords(
  cluster: ICluster,
  trans: TranslationBundle
): string {
  const left = leftWords(cluster, Date.now() / 1000, trans);
  const words = trans.__(
    '%1: %2, %3 ready',
    shownName(cluster, trans),
    phaseWord(cluster.phase, trans),
    amount(cluster.workers.ready, cluster.unit, trans)
  );
  return left === '' ? words : trans.__('%1, %2', words, left);
}

/** Whether a user should look at it although nothing was asked of them. */
export function needsAttention(cluster: ICluster, now: number): boolean {
  return (
    ['degraded', 'unreachable'].includes(cluster.phase) ||
    Boolean(cluster.loss) ||
    Boolean(cluster.gpu_words) ||
    isStuck(cluster, now)
  );
}

export function phaseWord(phase: Phase, trans: TranslationBundle): string {
  switch (phase) {
    case 'pending':
      return trans.__('Waiting');
    case 'starting':
      return trans.__('Starting');
    case 'running':
      return trans.__('Running');
    case 'degraded':
      return trans.__('Degraded');
    case 'stopping':
      return trans.__('Stopping');
    case 'stopped':
      return trans.__('Stopped');
    case 'failed':
      return trans.__('Failed');
    case 'unreachable':
      return trans.__('Unreachable');
  }
}

/** "1 worker", "4 GPUs": an amount in a cluster's or profile's unit. */
export function amount(
  n: number,
  unit: string,
  trans: TranslationBundle
): string {
  return unit === 'GPUs'
    ? trans._n('%1 GPU', '%1 GPUs', n)
    : trans._n('%1 worker', '%1 workers', n);
}

/** The unit as a field's label. */
export function unitLabel(unit: string, trans: TranslationBundle): string {
  return unit === 'GPUs' ? trans.__('GPUs') : trans.__('Workers');
}

/** "4 workers" or "1 to 4 workers". */
export function targetWords(
  target: ITarget,
  unit: string,
  trans: TranslationBundle
): string {
  if (target.minimum === target.maximum) {
    return amount(target.maximum, unit, trans);
  }
  return trans.__(
    '%1 to %2',
    target.minimum,
    amount(target.maximum, unit, trans)
  );
}

/** "2 clusters, 4 of 4 workers": what clusters that have not ended come to; '' where there is none. */
export function totalWords(
  clusters: ReadonlyArray<ICluster>,
  trans: TranslationBundle
): string {
  const live = clusters.filter(cluster => !isEnded(cluster.phase));
  if (live.length === 0) {
    return '';
  }
  // How many workers others have is not known.
  const counted = live.filter(isOurs);
  const units = [...new Set(counted.map(cluster => cluster.unit))].map(unit => {
    const counts = counted
      .filter(cluster => cluster.unit === unit)
      .map(cluster => cluster.workers);
    const ready = counts.reduce((sum, count) => sum + count.ready, 0);
    const asked = counts.reduce((sum, count) => sum + count.asked, 0);
    return trans.__('%1 of %2', ready, amount(asked, unit, trans));
  });
  const many = trans._n('%1 cluster', '%1 clusters', live.length);
  const simulated = live.filter(cluster => cluster.simulated).length;
  const named =
    simulated === 0
      ? many
      : simulated === live.length
        ? trans.__('%1 (simulation)', many)
        : trans.__('%1 (%2 of them a simulation)', many, simulated);
  return [named, ...units].join(', ');
}

/** The range that a request for a fixed or adaptive amount stands for. */
export function rangeOf(request: TargetRequest): ITarget {
  return 'workers' in request
    ? { minimum: request.workers, maximum: request.workers }
    : request;
}

const SIZES = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];

/** Bytes with a binary unit and at most one decimal. */
export function bytes(n: number): string {
  let size = 0;
  let value = n;
  while (value >= 1024 && size < SIZES.length - 1) {
    value /= 1024;
    size += 1;
  }
  const digits = value < 10 && size > 0 ? 1 : 0;
  return `${value.toFixed(digits)} ${SIZES[size]}`;
}

/** A span of time in its two largest units. */
export function duration(seconds: number, trans: TranslationBundle): string {
  const whole = Math.max(0, Math.floor(seconds));
  if (whole < 60) {
    return trans.__('%1 s', whole);
  }
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) {
    return trans.__('%1 min', minutes);
  }
  const hours = Math.floor(minutes / 60);
  if (hours < 24) {
    return trans.__('%1 h %2 min', hours, minutes % 60);
  }
  return trans.__('%1 d %2 h', Math.floor(hours / 24), hours % 24);
}

/** An epoch time as a clock time, with the date where it is not today's. */
export function moment(seconds: number, now = new Date()): string {
  const date = new Date(seconds * 1000);
  const time = date.toLocaleTimeString([], {
    hour: '2-digit',
    minute: '2-digit'
  });
  return date.toDateString() === now.toDateString()
    ? time
    : `${date.toLocaleDateString()} ${time}`;
}

/** An epoch time of today with its seconds. */
export function exactMoment(seconds: number): string {
  return new Date(seconds * 1000).toLocaleTimeString();
}

/** States of jobs whose name says all about the cause. */
const TOLD: ReadonlySet<string> = new Set(['node_fail', 'preempted']);
const SHOWN_NODES = 3;

/**
 * "demo01 failed at 08:15: 4 GPUs lost with what was in their memory; 4 replacements are waiting."
 */
export function lossWords(loss: ILoss, trans: TranslationBundle): string {
  const lost = amount(loss.workers, loss.unit, trans);
  const nodes = nodeWords(loss.nodes, trans);
  const failed = loss.state === 'node_fail' && !loss.requeued && nodes !== '';
  const what =
    failed || nodes === '' ? lost : trans.__('%1 on %2', lost, nodes);
  const told = trans.__(
    '%1 at %2: %3',
    failed ? trans.__('%1 failed', nodes) : lossWord(loss, trans),
    moment(loss.time),
    loss.connected
      ? trans._n(
          '%2 lost with what was in its memory',
          '%2 lost with what was in their memory',
          loss.workers,
          what
        )
      : trans._n(
          '%2 lost before it was ready',
          '%2 lost before they were ready',
          loss.workers,
          what
        )
  );
  const next = replacementWords(loss, trans);
  return next === '' ? trans.__('%1.', told) : trans.__('%1; %2.', told, next);
}

/** Why it happened, where the first words do not say it all. */
export function lossCause(loss: ILoss): string {
  return loss.requeued || TOLD.has(loss.state) ? '' : loss.cause;
}

function nodeWords(
  nodes: ReadonlyArray<string>,
  trans: TranslationBundle
): string {
  const shown = nodes.slice(0, SHOWN_NODES).join(', ');
  const more = nodes.length - SHOWN_NODES;
  return more > 0
    ? trans._n('%2 and %1 more', '%2 and %1 more', more, shown)
    : shown;
}

function lossWord(loss: ILoss, trans: TranslationBundle): string {
  if (loss.requeued) {
    return trans.__('Requeued');
  }
  if (loss.given_up) {
    return trans.__('Given up without an answer');
  }
  switch (loss.state) {
    case 'node_fail':
      return trans.__('Node failed');
    case 'preempted':
      return trans.__('Preempted');
    case 'out_of_memory':
      return trans.__('Out of memory');
    case 'timeout':
      return trans.__('Time limit reached');
    case 'cancelled':
      return trans.__('Cancelled');
    case 'failed':
      return trans.__('Failed');
    default:
      return trans.__('Ended');
  }
}

function replacementWords(loss: ILoss, trans: TranslationBundle): string {
  const { waiting, starting, replaced } = loss;
  if (waiting > 0) {
    return trans._n(
      '%1 replacement is waiting',
      '%1 replacements are waiting',
      waiting
    );
  }
  if (starting > 0) {
    return trans._n(
      '%1 replacement is starting',
      '%1 replacements are starting',
      starting
    );
  }
  return replaced > 0
    ? trans._n('%1 replacement is ready', '%1 replacements are ready', replaced)
    : '';
}

/** GPU-hours with the digits that matter. */
export function gpuHours(hours: number, trans: TranslationBundle): string {
  const shown = hours < 10 ? Math.round(hours * 10) / 10 : Math.round(hours);
  return trans._n('%1 GPU-hour', '%1 GPU-hours', shown);
}
