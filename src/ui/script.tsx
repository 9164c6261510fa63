/** What a job would run, in the dialog that starts a cluster. */

import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import type { IJob, IJobScript, IScript } from '../model/tokens';
import { moment } from '../model/words';
import type { ILoaded } from './loaded';
import { Shortened } from './timeline';

/** How many scripts to show before the rest is asked for. */
const SHOWN_AT_FIRST = 3;
const SHOWN_IDS = 8;

/** How to fetch the script that the fields stand for. */
export interface IScriptPreview {
  /** What the script depends on. */
  key: string;
  load: () => Promise<IScript>;
}

interface IScriptPreviewProps {
  /** Whether the fields are complete enough to make a script of them. */
  complete: boolean;
  loaded: ILoaded<IScript | null>;
  trans: TranslationBundle;
}

/** Folded until it is asked for; it follows the fields. */
export function ScriptPreview(props: IScriptPreviewProps): JSX.Element {
  const { complete, loaded, trans } = props;
  return (
    <details className="jp-gpucluster-More">
      <summary>{trans.__('Job script and submit command')}</summary>
      <div className="jp-gpucluster-More-fields">
        {complete ? (
          <ScriptTexts loaded={loaded} trans={trans} />
        ) : (
          <p>{trans.__('Fix the field above to see the script.')}</p>
        )}
      </div>
    </details>
  );
}

/** The command and the script, or why there is none yet. */
export function ScriptTexts(props: {
  loaded: ILoaded<IScript | null>;
  /** Whether they stand for a cluster whose own scripts are not there. */
  recalculated?: boolean;
  trans: TranslationBundle;
}): JSX.Element {
  const { trans } = props;
  const { value, failure } = props.loaded;
  if (failure !== null) {
    return <p role="status">{failure.message}</p>;
  }
  if (value === null) {
    return <p>{trans.__('Asking the server…')}</p>;
  }
  const [command, script] = props.recalculated
    ? [
        trans.__('Submit command, calculated now from the profile'),
        trans.__('Job script, calculated now from the profile')
      ]
    : [trans.__('Submit command'), trans.__('Job script')];
  return (
    <>
      <Code label={command} text={value.command} />
      <Code label={script} text={value.text} />
    </>
  );
}

/** What a cluster submitted, one script after the other, the newest first. */
export function RanScripts(props: {
  scripts: IJobScript[];
  jobs: IJob[];
  trans: TranslationBundle;
}): JSX.Element {
  const { scripts, jobs, trans } = props;
  return (
    <Shortened items={scripts} first={SHOWN_AT_FIRST} trans={trans}>
      {items =>
        items.map(({ mark, command, text, written }) => (
          <section key={mark} aria-label={mark}>
            <h3>{scriptTitle(mark, written, jobs, trans)}</h3>
            {command !== '' && (
              <Code
                label={trans.__('Submit command of %1', mark)}
                text={command}
              />
            )}
            <Code label={trans.__('Job script of %1', mark)} text={text} />
          </section>
        ))
      }
    </Shortened>
  );
}

/** "gpc-ab12cd-1, submitted at 08:10: 3 jobs (17_0, 17_1, 17_2)". */
function scriptTitle(
  mark: string,
  written: number,
  jobs: IJob[],
  trans: TranslationBundle
): string {
  const submitted = trans.__('%1, submitted at %2', mark, moment(written));
  const own = jobs.filter(job => job.mark === mark);
  if (own.length === 0) {
    return submitted;
  }
  const many = trans._n('%1 job', '%1 jobs', own.length);
  const ids = own.map(job => job.id).filter(id => id !== '');
  return ids.length === 0 || ids.length > SHOWN_IDS
    ? trans.__('%1: %2', submitted, many)
    : trans.__('%1: %2 (%3)', submitted, many, ids.join(', '));
}

/** A text to read, with what it is. */
export function Code(props: { label: string; text: string }): JSX.Element {
  return (
    <figure className="jp-gpucluster-Code">
      <figcaption>{props.label}</figcaption>
      <pre tabIndex={0} role="region" aria-label={props.label}>
        {props.text}
      </pre>
    </figure>
  );
}
