/** What a job would run, in the dialog that starts a cluster. */

import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import type { IScript } from '../tokens';
import { useLoaded } from './loaded';

const TYPING_MS = 400;

/** How to fetch the script that the fields stand for. */
export interface IScriptPreview {
  /** What the script depends on. */
  key: string;
  load: () => Promise<IScript>;
}

interface IScriptPreviewProps {
  /** Null while the fields are wrong. */
  script: IScriptPreview | null;
  trans: TranslationBundle;
}

/** Folded until it is asked for; then it follows the fields. */
export function ScriptPreview(props: IScriptPreviewProps): JSX.Element {
  const { script, trans } = props;
  const [open, setOpen] = React.useState(false);
  const { value, failure } = useLoaded(
    () => script?.load() ?? Promise.resolve(null),
    open ? (script?.key ?? '') : '',
    TYPING_MS
  );
  return (
    <details
      className="jp-gpucluster-More"
      onToggle={event => setOpen(event.currentTarget.open)}
    >
      <summary>{trans.__('Job script and submit command')}</summary>
      <div className="jp-gpucluster-More-fields">
        {script === null ? (
          <p>{trans.__('The fields above are incomplete.')}</p>
        ) : failure !== null ? (
          <p role="status">{failure.message}</p>
        ) : value === null ? (
          <p>{trans.__('Asking the server…')}</p>
        ) : (
          <>
            <Code label={trans.__('Submit command')} text={value.command} />
            <Code label={trans.__('Job script')} text={value.text} />
          </>
        )}
      </div>
    </details>
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
