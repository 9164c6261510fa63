/** The pages of Dask's dashboard: which there are, what they are called, and which come first. */

import type { TranslationBundle } from '@jupyterlab/translation';

/** A page of Dask's dashboard. */
export interface IPlot {
  /** Its path below the dashboard's address. */
  path: string;
  title: string;
}

export const WHOLE_DASHBOARD = 'status';

/** Words of plots that are abbreviations. */
const UPPER = /^(cpu|gpu|rmm|io)$/;

/** The pages worth a tab of their own; those about GPUs first where workers have GPUs. */
export function plotsOf(unit: string, trans: TranslationBundle): IPlot[] {
  const gpu = ['individual-gpu-memory', 'individual-gpu-utilization'];
  return [
    ...(unit === 'GPUs' ? gpu : []),
    'individual-task-stream',
    'individual-progress',
    'individual-workers-memory',
    'individual-workers'
  ].map(path => ({ path, title: plotTitle(path, trans) }));
}

/** The paths of a scheduler's own list as plots, by title; some clusters have more than others. */
export function allPlots(
  listed: Record<string, string>,
  trans: TranslationBundle
): IPlot[] {
  return Object.values(listed)
    .map(path => path.replace(/^\//, ''))
    .map(path => ({ path, title: plotTitle(path, trans) }))
    .sort((a, b) => a.title.localeCompare(b.title));
}

/** "GPU memory" for `individual-gpu-memory`. */
export function plotTitle(path: string, trans: TranslationBundle): string {
  switch (path) {
    case WHOLE_DASHBOARD:
      return trans.__('Whole dashboard');
    case 'individual-gpu-memory':
      return trans.__('GPU memory');
    case 'individual-gpu-utilization':
      return trans.__('GPU utilization');
    case 'individual-task-stream':
      return trans.__('Task stream');
    case 'individual-progress':
      return trans.__('Progress');
    case 'individual-workers':
      return trans.__('Workers');
    case 'individual-workers-memory':
      return trans.__('Memory by worker');
  }
  const words = path
    .replace(/^.*individual-/, '')
    .replace(/\.html$/, '')
    .split('-')
    .map(word => (UPPER.test(word) ? word.toUpperCase() : word))
    .join(' ');
  return words.charAt(0).toUpperCase() + words.slice(1);
}
