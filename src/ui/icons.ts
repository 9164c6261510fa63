/** The icons of the extension, one per phase and one for each thing that a tab can show. */

import { LabIcon } from '@jupyterlab/ui-components';

import dashboardSvg from '../../style/icons/dashboard.svg';
import degradedSvg from '../../style/icons/degraded.svg';
import failedSvg from '../../style/icons/failed.svg';
import clusterSvg from '../../style/icons/gpucluster.svg';
import pendingSvg from '../../style/icons/pending.svg';
import runningSvg from '../../style/icons/running.svg';
import startingSvg from '../../style/icons/starting.svg';
import stoppedSvg from '../../style/icons/stopped.svg';
import stoppingSvg from '../../style/icons/stopping.svg';
import unreachableSvg from '../../style/icons/unreachable.svg';
import type { Phase } from '../model/tokens';

export const clusterIcon = icon('cluster', clusterSvg);
export const dashboardIcon = icon('dashboard', dashboardSvg);

export const phaseIcons: Readonly<Record<Phase, LabIcon>> = {
  pending: icon('pending', pendingSvg),
  starting: icon('starting', startingSvg),
  running: icon('running', runningSvg),
  degraded: icon('degraded', degradedSvg),
  stopping: icon('stopping', stoppingSvg),
  stopped: icon('stopped', stoppedSvg),
  failed: icon('failed', failedSvg),
  unreachable: icon('unreachable', unreachableSvg)
};

function icon(name: string, svgstr: string): LabIcon {
  return new LabIcon({ name: `jupyter-gpucluster:${name}`, svgstr });
}
