/** The facts about a cluster that are shown on demand. */

import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import type { IClock, ICluster } from '../model/tokens';
import { duration, isOurs, moment, targetWords } from '../model/words';
import type { ITimelineSource } from './timeline';
import { Timeline } from './timeline';
import { Button } from './button';

interface IClusterDetailsProps {
  cluster: ICluster;
  source: ITimelineSource;
  now: number;
  onOpenTab: () => void;
  trans: TranslationBundle;
}

export function ClusterDetails(props: IClusterDetailsProps): JSX.Element {
  const { cluster, trans } = props;
  const [open, setOpen] = React.useState(false);
  return (
    <details
      className="jp-gpucluster-Details"
      onToggle={event => setOpen(event.currentTarget.open)}
    >
      <summary aria-label={trans.__('Details of %1', cluster.name)}>
        {trans.__('Details')}
      </summary>
      <Facts cluster={cluster} now={props.now} trans={trans} />
      {open && (
        <>
          <Timeline cluster={cluster} source={props.source} trans={trans} />
          <div className="jp-gpucluster-Buttons">
            <Button
              label={trans.__('Open in a tab')}
              onClick={props.onOpenTab}
            />
          </div>
        </>
      )}
    </details>
  );
}

/** What does not change from moment to moment. */
export function Facts(props: {
  cluster: ICluster;
  now: number;
  trans: TranslationBundle;
}): JSX.Element {
  const { cluster, trans } = props;
  const facts: [string, string][] = [
    [
      trans.__('Profile'),
      trans.__('%1 (%2)', cluster.profile, cluster.backend)
    ],
    [
      trans.__('Requested'),
      isOurs(cluster) ? targetWords(cluster.target, cluster.unit, trans) : ''
    ],
    [trans.__('Started'), moment(cluster.created)],
    [trans.__('Scheduler'), cluster.scheduler_address],
    [trans.__('Threads'), cluster.threads > 0 ? String(cluster.threads) : ''],
    [trans.__('Clients'), cluster.clients > 0 ? String(cluster.clients) : ''],
    [trans.__('Environment'), cluster.environment || cluster.python],
    [trans.__('Allocation'), cluster.allocation ?? ''],
    [trans.__('Without Jupyter'), cluster.survival],
    ...cluster.clocks.map((clock): [string, string] =>
      clock.job
        ? [trans.__('Job ends'), jobEndWords(clock, props.now, trans)]
        : [clock.name, clockWords(clock, props.now, trans)]
    ),
    [trans.__('Directory'), cluster.directory]
  ];
  return (
    <dl className="jp-gpucluster-Facts">
      {facts
        .filter(([, value]) => value !== '')
        .map(([name, value]) => (
          <React.Fragment key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </React.Fragment>
        ))}
    </dl>
  );
}

function clockWords(
  clock: IClock,
  now: number,
  trans: TranslationBundle
): string {
  return clock.ends === null
    ? trans.__('%1, not running', duration(clock.seconds, trans))
    : trans.__(
        '%1 left, until %2',
        duration(clock.ends - now, trans),
        moment(clock.ends)
      );
}

/** "09:12 (a new one follows), 42 min left". */
function jobEndWords(
  clock: IClock,
  now: number,
  trans: TranslationBundle
): string {
  if (clock.ends === null) {
    return clockWords(clock, now, trans);
  }
  const end = moment(clock.ends);
  const left = duration(clock.ends - now, trans);
  if (clock.follows === true) {
    return trans.__('%1 (a new one follows), %2 left', end, left);
  }
  return clock.follows === false
    ? trans.__('%1 (no new one follows), %2 left', end, left)
    : trans.__('%1, %2 left', end, left);
}
