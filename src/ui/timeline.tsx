/** What has happened to a cluster, and its jobs one by one. */

import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import type { ICluster, IClusterEvent, IJob } from '../model/tokens';
import { duration, moment } from '../model/words';
import { useLoaded } from './loaded';
import { Table } from './table';
import { Button } from './button';

const SHOWN_AT_FIRST = 12;
/** States of jobs that did not end as planned. */
const LOST = new Set([
  'failed',
  'timeout',
  'out_of_memory',
  'node_fail',
  'preempted'
]);

/** Where jobs and events come from. */
export interface ITimelineSource {
  events: (cluster: ICluster) => Promise<IClusterEvent[]>;
  jobs: (cluster: ICluster) => Promise<IJob[]>;
}

interface ITimelineProps {
  cluster: ICluster;
  source: ITimelineSource;
  trans: TranslationBundle;
}

interface ITimeline {
  /** Null before the first answer. */
  jobs: IJob[] | null;
  events: IClusterEvent[] | null;
  failure: Error | null;
}

/** Both, fetched anew whenever the cluster has changed. */
export function useTimeline(
  cluster: ICluster,
  source: ITimelineSource
): ITimeline {
  const key = JSON.stringify([
    cluster.id,
    cluster.revision,
    cluster.phase,
    cluster.workers
  ]);
  const jobs = useLoaded(() => source.jobs(cluster), key);
  const events = useLoaded(() => source.events(cluster), key);
  return {
    jobs: jobs.value,
    events: events.value,
    failure: jobs.failure ?? events.failure
  };
}

/** What a card has room for. */
export function Timeline(props: ITimelineProps): JSX.Element {
  const { cluster, trans } = props;
  const { jobs, events, failure } = useTimeline(cluster, props.source);
  return (
    <>
      {failure !== null && (
        <p className="jp-gpucluster-Card-reason" role="alert">
          {failure.message}
        </p>
      )}
      <Jobs jobs={jobs ?? []} cluster={cluster} trans={trans} />
      <Events
        events={events ?? []}
        cluster={cluster}
        heading="h4"
        trans={trans}
      />
    </>
  );
}

interface IPartProps {
  cluster: ICluster;
  trans: TranslationBundle;
}

export function Jobs(
  props: IPartProps & {
    jobs: IJob[];
    /** Whether there is room for times. */
    wide?: boolean;
  }
): JSX.Element | null {
  const { cluster, wide, trans } = props;
  if (props.jobs.length === 0) {
    return null;
  }
  // Most clusters have workers of one kind, and no use for a column about it.
  const grouped = props.jobs.some(job => job.group);
  const now = Date.now() / 1000;
  const first = Math.min(...props.jobs.map(job => job.submitted));
  const newestFirst = [...props.jobs].sort((a, b) => b.submitted - a.submitted);
  return (
    <Shortened items={newestFirst} trans={trans}>
      {jobs => (
        <Table
          name={trans.__('Jobs of %1', cluster.name)}
          caption={trans.__('Jobs')}
          heads={[
            trans.__('Job'),
            grouped && trans.__('Group'),
            trans.__('State'),
            trans.__('Node'),
            wide && trans.__('Requested'),
            wide && trans.__('Started'),
            wide && trans.__('Ended'),
            wide && trans.__('Waited'),
            wide && trans.__('Ran'),
            wide && trans.__('Course')
          ]}
        >
          {jobs.map(job => (
            <tr key={`${job.mark} ${job.task}`}>
              <td>{job.id || `${job.mark}.${job.task}`}</td>
              {grouped && <td>{job.group || '–'}</td>}
              <td
                className={
                  job.cause ? 'jp-gpucluster-Jobs-sentence' : undefined
                }
              >
                {stateWords(job, trans)}
              </td>
              <td>
                {job.nodes.length === 0 && cluster.backend === 'local'
                  ? trans.__('this machine')
                  : job.nodes.join(', ')}
              </td>
              {wide &&
                [job.submitted, job.started, job.ended].map((time, index) => (
                  <td key={index}>
                    {time ? <time>{moment(time)}</time> : '–'}
                  </td>
                ))}
              {wide && (
                <Course job={job} first={first} now={now} trans={trans} />
              )}
            </tr>
          ))}
        </Table>
      )}
    </Shortened>
  );
}

/** How long a job waited and ran, in words, and as parts of the cluster's time until now. */
function Course(props: {
  job: IJob;
  /** When the first of the jobs was submitted. */
  first: number;
  now: number;
  trans: TranslationBundle;
}): JSX.Element {
  const { first, job, now, trans } = props;
  const end = job.ended ?? now;
  const start = job.started ?? end;
  const part = (seconds: number): string =>
    `${(100 * Math.max(0, seconds)) / Math.max(1, now - first)}%`;
  return (
    <>
      <td>{duration(start - job.submitted, trans)}</td>
      <td>{job.started === null ? '–' : duration(end - start, trans)}</td>
      <td>
        <div className="jp-gpucluster-Course" aria-hidden="true">
          <span style={{ width: part(job.submitted - first) }} />
          <span
            className="jp-gpucluster-Bar-part"
            data-kind="pending"
            style={{ width: part(start - job.submitted) }}
          />
          <span
            className="jp-gpucluster-Bar-part"
            data-kind={LOST.has(job.state) ? 'lost' : 'ready'}
            style={{ width: part(end - start) }}
          />
        </div>
      </td>
    </>
  );
}

export function Events(
  props: IPartProps & {
    events: IClusterEvent[];
    /** One level below the heading above. */
    heading: 'h3' | 'h4';
  }
): JSX.Element | null {
  const { cluster, heading: Heading, trans } = props;
  if (props.events.length === 0) {
    return null;
  }
  return (
    <Shortened items={[...props.events].reverse()} trans={trans}>
      {events => (
        <>
          <Heading>{trans.__('Timeline')}</Heading>
          <ol
            className="jp-gpucluster-Events"
            aria-label={trans.__('Timeline of %1, newest first', cluster.name)}
          >
            {events.map((event, index) => (
              <li key={`${event.time} ${index}`}>
                <time dateTime={new Date(event.time * 1000).toISOString()}>
                  {moment(event.time)}
                </time>
                <span>{event.message}</span>
              </li>
            ))}
          </ol>
        </>
      )}
    </Shortened>
  );
}

interface IShortenedProps<T> {
  items: T[];
  /** How many to show before the rest is asked for. */
  first?: number;
  children: (items: T[]) => React.ReactNode;
  trans: TranslationBundle;
}

/** The first few of many items, with a button for the rest. */
export function Shortened<T>(props: IShortenedProps<T>): JSX.Element {
  const { items, first = SHOWN_AT_FIRST, trans } = props;
  const [all, setAll] = React.useState(false);
  return (
    <>
      {props.children(all ? items : items.slice(0, first))}
      {!all && items.length > first && (
        <Button
          label={trans.__('Show all %1', items.length)}
          onClick={() => setAll(true)}
        />
      )}
    </>
  );
}

/** State, exit code and cause, as far as there are any. */
function stateWords(job: IJob, trans: TranslationBundle): string {
  const word = stateWord(job.state, trans);
  const state =
    job.exit_code === null
      ? word
      : trans.__('%1, exit code %2', word, job.exit_code);
  const cause = job.cause || job.reason;
  return ['', job.state].includes(cause)
    ? state
    : trans.__('%1: %2', state, cause);
}

function stateWord(state: string, trans: TranslationBundle): string {
  switch (state) {
    case 'submitting':
      return trans.__('being submitted');
    case 'pending':
      return trans.__('waiting');
    case 'held':
      return trans.__('held');
    case 'running':
      return trans.__('running');
    case 'suspended':
      return trans.__('suspended');
    case 'ending':
      return trans.__('ending');
    case 'done':
      return trans.__('done');
    case 'failed':
      return trans.__('failed');
    case 'cancelled':
      return trans.__('cancelled');
    case 'timeout':
      return trans.__('out of time');
    case 'out_of_memory':
      return trans.__('out of memory');
    case 'node_fail':
      return trans.__('node failed');
    case 'preempted':
      return trans.__('preempted');
    default:
      return trans.__('unknown');
  }
}
