/** What a job would run, in the dialog that starts a cluster. */

import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import type { IScript } from '../tokens';
import type { ILoaded } from './loaded';

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
          <p>{trans.__('The fields above are incomplete.')}</p>
        )}
      </div>
    </details>
  );
}

/** The command and the script, or why there is none yet. */
export function ScriptTexts(props: {
  loaded: ILoaded<IScript | null>;
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
  return (
    <>
      <Code label={trans.__('Submit command')} text={value.command} />
      <Code label={trans.__('Job script')} text={value.text} />
    </>
  );
}

function Code(props: { label: string; text: string }): JSX.Element {
  return (
    <figure className="jp-gpucluster-Code">
      <figcaption>{props.label}</figcaption>
      <pre tabIndex={0} role="region" aria-label={props.label}>
        {props.text}
      </pre>
    </figure>
  );
}
