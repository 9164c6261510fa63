/** All that is known of a cluster, section by section. */

import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import type { ICluster, IClustersModel, IJob } from '../model/tokens';
import { isEnded, isOurs } from '../model/words';
import { WorkersBar } from '../ui/bar';
import type { ICardActions } from './cardActions';
import { ClusterActions } from './clusterActions';
import { useNow } from '../ui/now';
import { Facts } from '../ui/facts';
import { GpuTable } from '../ui/gpus';
import { useLoaded } from '../ui/loaded';
import { LogView } from '../ui/log';
import { RanScripts, ScriptTexts } from '../ui/script';
import { LossLine, PhaseLine, Readings, Reasons } from '../ui/state';
import { Events, Jobs, useTimeline } from '../ui/timeline';
import { Button } from '../ui/button';
import { Workers } from './workers';

interface IDetailsPageProps {
  model: IClustersModel;
  /** The cluster's id. */
  cluster: string;
  section: string;
  onSection: (section: string) => void;
  actions: ICardActions;
  onShowCluster: (cluster: string) => void;
  trans: TranslationBundle;
}

export function DetailsPage(props: IDetailsPageProps): JSX.Element {
  const { model, trans } = props;
  const cluster = model.cluster(props.cluster);
  if (cluster === undefined) {
    return (
      <p className="jp-gpucluster-Page" role="status">
        {model.connection === 'loading'
          ? trans.__('Looking for the cluster…')
          : model.failure !== null
            ? model.failure.message
            : trans.__('This cluster is gone.')}
      </p>
    );
  }
  return <KnownCluster {...props} known={cluster} />;
}

function KnownCluster(
  props: IDetailsPageProps & { known: ICluster }
): JSX.Element {
  const { known, trans } = props;
  const now = useNow();
  return (
    <div
      className="jp-gpucluster-Page"
      role="region"
      aria-label={trans.__('Details of %1', known.name)}
    >
      <div className="jp-gpucluster-Page-header">
        <h2>{known.name}</h2>
        <span>{known.title}</span>
        <Button
          label={trans.__('Show the cluster')}
          onClick={() => props.onShowCluster(known.id)}
        />
      </div>
      <LossLine cluster={known} trans={trans} />
      <PhaseLine cluster={known} now={now} trans={trans} />
      <Reasons cluster={known} trans={trans} />
      <WorkersBar cluster={known} trans={trans} />
      <Readings cluster={known} now={now} trans={trans} />
      <ClusterActions
        cluster={known}
        actions={props.actions}
        now={now}
        trans={trans}
      />
      <Sections {...props} now={now} />
    </div>
  );
}

function Sections(
  props: IDetailsPageProps & { known: ICluster; now: number }
): JSX.Element {
  const { known, model, now, trans } = props;
  const timeline = useTimeline(known, {
    jobs: cluster => model.api.jobs(cluster.id),
    events: cluster => model.api.events(cluster.id)
  });
  const sections: [string, string, () => React.ReactNode][] = [
    [
      'jobs',
      trans.__('Jobs'),
      () => (
        <>
          {timeline.failure !== null && (
            <p role="alert">{timeline.failure.message}</p>
          )}
          {timeline.jobs?.length === 0 && (
            <p>
              {isOurs(known)
                ? trans.__('No jobs yet.')
                : trans.__(
                    'Jobs are not shown for clusters started elsewhere.'
                  )}
            </p>
          )}
          <Jobs jobs={timeline.jobs ?? []} cluster={known} wide trans={trans} />
        </>
      )
    ],
    [
      'workers',
      trans.__('Workers'),
      () => (
        <>
          <Workers cluster={known} model={model} trans={trans} />
          <GpuTable gpus={known.gpus} trans={trans} />
        </>
      )
    ],
    [
      'timeline',
      trans.__('Timeline'),
      () => (
        <Events
          events={timeline.events ?? []}
          cluster={known}
          heading="h3"
          trans={trans}
        />
      )
    ],
    [
      'script',
      trans.__('Script'),
      () => (
        <ClusterScripts
          cluster={known}
          model={model}
          jobs={timeline.jobs ?? []}
          trans={trans}
        />
      )
    ],
    ['log', trans.__('Log'), () => <ClusterLog {...props} jobs={timeline} />],
    [
      'facts',
      trans.__('Overview'),
      () => <Facts cluster={known} now={now} trans={trans} />
    ]
  ];
  const shown =
    sections.find(([name]) => name === props.section) ?? sections[0];
  return (
    <>
      <div
        className="jp-gpucluster-Tabs"
        role="tablist"
        aria-label={trans.__('Sections')}
        onKeyDown={event => {
          const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key] ?? 0;
          if (step !== 0) {
            const at = sections.indexOf(shown) + step + sections.length;
            const [next] = sections[at % sections.length];
            props.onSection(next);
            document.getElementById(tabId(known, next))?.focus();
          }
        }}
      >
        {sections.map(([name, title]) => (
          <button
            key={name}
            id={tabId(known, name)}
            type="button"
            role="tab"
            className="jp-gpucluster-Tab"
            aria-selected={name === shown[0]}
            aria-controls={`${tabId(known, shown[0])}-panel`}
            tabIndex={name === shown[0] ? 0 : -1}
            onClick={() => props.onSection(name)}
          >
            {title}
          </button>
        ))}
      </div>
      <div
        id={`${tabId(known, shown[0])}-panel`}
        role="tabpanel"
        aria-labelledby={tabId(known, shown[0])}
        className="jp-gpucluster-Tabpanel"
      >
        {shown[2]()}
      </div>
    </>
  );
}

function tabId(cluster: ICluster, section: string): string {
  return `jp-gpucluster-tab-${cluster.id}-${section}`;
}

interface IClusterScriptsProps {
  cluster: ICluster;
  model: IClustersModel;
  trans: TranslationBundle;
}

/** The scripts that ran; where there are none, why not. */
function ClusterScripts(
  props: IClusterScriptsProps & { jobs: IJob[] }
): JSX.Element {
  const { cluster, model, trans } = props;
  const { value, failure } = useLoaded(
    () => model.api.scripts(cluster.id),
    isOurs(cluster) ? JSON.stringify([cluster.id, cluster.revision]) : ''
  );
  if (!isOurs(cluster)) {
    return (
      <p>{trans.__('Scripts are not shown for clusters started elsewhere.')}</p>
    );
  }
  if (value === null) {
    return (
      <p role="status">{failure?.message ?? trans.__('Asking the server…')}</p>
    );
  }
  return value.length > 0 ? (
    <RanScripts scripts={value} jobs={props.jobs} trans={trans} />
  ) : (
    <>
      <p>
        {isEnded(cluster.phase)
          ? trans.__('The scripts of this cluster are no longer stored.')
          : trans.__('No job was submitted yet.')}
      </p>
      <RecalculatedScript {...props} />
    </>
  );
}

/** What its profile makes of its options now, which never ran. */
function RecalculatedScript(props: IClusterScriptsProps): JSX.Element {
  const { cluster, model, trans } = props;
  const { profile, target, options, python } = cluster;
  const loaded = useLoaded(
    () => model.api.script(profile, { ...target, options, python }),
    JSON.stringify([cluster.id, target])
  );
  return <ScriptTexts loaded={loaded} recalculated trans={trans} />;
}

function ClusterLog(
  props: IDetailsPageProps & {
    known: ICluster;
    jobs: ReturnType<typeof useTimeline>;
  }
): JSX.Element {
  const { known, model, trans } = props;
  const [job, setJob] = React.useState('');
  const load = React.useCallback(
    () => model.api.logs(known.id, job),
    [model, known.id, job]
  );
  return (
    <>
      <label className="jp-gpucluster-Check">
        {trans.__('Log of')}
        <select
          className="jp-mod-styled"
          value={job}
          onChange={event => setJob(event.target.value)}
        >
          <option value="">{trans.__('scheduler and all jobs')}</option>
          {props.jobs.jobs?.map(item => (
            <option
              key={`${item.mark}_${item.task}`}
              value={`${item.mark}_${item.task}`}
            >
              {item.id || `${item.mark}_${item.task}`}
            </option>
          ))}
        </select>
      </label>
      <LogView
        key={job}
        load={load}
        live={!isEnded(known.phase)}
        trans={trans}
      />
    </>
  );
}
