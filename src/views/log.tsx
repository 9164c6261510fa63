/** The text of a cluster's logs in a dialog. */

import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

interface ILogViewProps {
  text: string;
  trans: TranslationBundle;
}

/** Starts at the end, where the newest lines are. */
export function LogView(props: ILogViewProps): JSX.Element {
  const area = React.useRef<HTMLPreElement>(null);
  React.useEffect(() => {
    area.current?.scrollTo({ top: area.current.scrollHeight });
  }, [props.text]);
  return (
    <pre
      ref={area}
      className="jp-gpucluster-Log"
      tabIndex={0}
      aria-label={props.trans.__('Log')}
    >
      {props.text === '' ? props.trans.__('Nothing logged yet.') : props.text}
    </pre>
  );
}
