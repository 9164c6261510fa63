/** The list of all plots of a cluster: searched, opened, and pinned to the top. */

import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { useLoaded } from '../ui/loaded';
import { holds, SearchField } from '../ui/search';
import type { IPlot } from './plots';
import { Button } from '../ui/button';

interface IPlotPickerProps {
  load: () => Promise<IPlot[]>;
  /** Paths of the plots that are pinned now. */
  pinned: string[];
  onPin: (pinned: string[]) => void;
  onOpen: (path: string) => void;
  trans: TranslationBundle;
}

export function PlotPicker(props: IPlotPickerProps): JSX.Element {
  const { trans } = props;
  const { value, failure } = useLoaded(props.load, 'plots');
  const [wanted, setWanted] = React.useState('');
  const [pinned, setPinned] = React.useState(props.pinned);
  const isPinned = ({ path }: IPlot): boolean => pinned.includes(path);
  const found = (value ?? [])
    .filter(({ title }) => holds(wanted, title))
    .sort((a, b) => Number(isPinned(b)) - Number(isPinned(a)));
  const togglePin = (plot: IPlot): void => {
    const changed = isPinned(plot)
      ? pinned.filter(path => path !== plot.path)
      : [...pinned, plot.path];
    setPinned(changed);
    props.onPin(changed);
  };
  return (
    <div className="jp-gpucluster-Plots">
      <SearchField
        label={trans.__('Search plots')}
        value={wanted}
        onChange={setWanted}
        onEnter={() => found.length > 0 && props.onOpen(found[0].path)}
      />
      <p role="status">
        {failure !== null
          ? failure.message
          : value === null
            ? trans.__('Asking the scheduler…')
            : trans._n('%1 plot', '%1 plots', found.length)}
      </p>
      <ul>
        {found.map(plot => (
          <li key={plot.path}>
            <Button
              label={plot.title}
              onClick={() => props.onOpen(plot.path)}
            />
            <Button
              label={trans.__('Pin')}
              pressed={isPinned(plot)}
              name={trans.__('Pin %1', plot.title)}
              tip={trans.__('Pinned plots come first here and in the menu.')}
              onClick={() => togglePin(plot)}
            />
          </li>
        ))}
      </ul>
    </div>
  );
}
