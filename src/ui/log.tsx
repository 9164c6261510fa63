/** A cluster's logs in a dialog: followed while they grow, and searched. */

import type { TranslationBundle } from '@jupyterlab/translation';
import { Clipboard } from '@jupyterlab/apputils';
import * as React from 'react';
import { Button } from './button';
import { useLoaded } from './loaded';

const FOLLOW_MS = 2000;
/** Levels of Python's logging, and what errors without a level begin with. */
const SEVERE = /\b(WARN(ING)?|ERROR|CRITICAL|FATAL|Traceback|\w*Error)\b/i;

interface ILogViewProps {
  load: () => Promise<string>;
  /** Whether the logs may still grow. */
  live: boolean;
  trans: TranslationBundle;
}

/** Starts at the end, where the newest lines are. */
export function LogView(props: ILogViewProps): JSX.Element {
  const { load, live, trans } = props;
  const [follow, setFollow] = React.useState(live);
  const [wanted, setWanted] = React.useState('');
  const [severe, setSevere] = React.useState(false);
  const { text, failure } = useText(load, follow);
  const area = React.useRef<HTMLPreElement>(null);
  const lines = (text ?? '').split('\n');
  const shown = lines.filter(
    line =>
      (wanted === '' || contains(line, wanted)) &&
      (!severe || SEVERE.test(line))
  );

  React.useEffect(() => {
    area.current?.scrollTo({ top: area.current.scrollHeight });
  }, [text]);

  return (
    <div className="jp-gpucluster-LogView">
      <div className="jp-gpucluster-LogView-tools">
        <input
          type="search"
          className="jp-mod-styled"
          aria-label={trans.__('Show only lines that contain')}
          placeholder={trans.__('Show only lines that contain…')}
          value={wanted}
          onChange={event => setWanted(event.target.value)}
        />
        <span role="status">
          {shown.length < lines.length &&
            trans.__('%1 of %2 lines', shown.length, lines.length)}
        </span>
        <label className="jp-gpucluster-Check">
          <input
            type="checkbox"
            checked={severe}
            onChange={event => setSevere(event.target.checked)}
          />
          {trans.__('Warnings and errors only')}
        </label>
        <Button
          label={trans.__('Copy')}
          onClick={() => Clipboard.copyToSystem(shown.join('\n'))}
        />
        <a
          className="jp-gpucluster-Button"
          download="cluster.log"
          href={`data:text/plain;charset=utf-8,${encodeURIComponent(shown.join('\n'))}`}
        >
          {trans.__('Download')}
        </a>
        {live && (
          <label className="jp-gpucluster-Check">
            <input
              type="checkbox"
              checked={follow}
              onChange={event => setFollow(event.target.checked)}
            />
            {trans.__('Follow')}
          </label>
        )}
      </div>
      {failure !== null && <p role="alert">{failure.message}</p>}
      <pre
        ref={area}
        className="jp-gpucluster-Log"
        tabIndex={0}
        role="region"
        aria-label={trans.__('Log')}
      >
        {text === null && failure === null && trans.__('Reading…')}
        {text === '' && trans.__('Nothing logged yet.')}
        {shown.map((line, index) => (
          <React.Fragment key={index}>
            <Line line={line} wanted={wanted} />
            {'\n'}
          </React.Fragment>
        ))}
      </pre>
    </div>
  );
}

/** The text, fetched once, and again and again while it is followed. */
function useText(
  load: () => Promise<string>,
  follow: boolean
): { text: string | null; failure: Error | null } {
  const [turn, setTurn] = React.useState(1);
  const loaded = useLoaded(load, String(turn));
  React.useEffect(() => {
    if (follow) {
      const timer = window.setTimeout(() => setTurn(turn + 1), FOLLOW_MS);
      return () => window.clearTimeout(timer);
    }
    return undefined;
  }, [loaded, follow]);
  return { text: loaded.value, failure: loaded.failure };
}

function Line(props: { line: string; wanted: string }): JSX.Element {
  const { line, wanted } = props;
  const at = wanted === '' ? -1 : find(line, wanted);
  if (at < 0) {
    return <>{line}</>;
  }
  const end = at + wanted.length;
  return (
    <>
      {line.slice(0, at)}
      <mark>{line.slice(at, end)}</mark>
      {line.slice(end)}
    </>
  );
}

function contains(line: string, wanted: string): boolean {
  return find(line, wanted) >= 0;
}

function find(line: string, wanted: string): number {
  return line.toLowerCase().indexOf(wanted.toLowerCase());
}
