/** The GPUs of a cluster, worker by worker. */

import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import type { IGpuReading } from '../model/tokens';
import { bytes } from '../model/words';
import { Table } from './table';

interface IGpuTableProps {
  gpus: ReadonlyArray<IGpuReading>;
  trans: TranslationBundle;
}

/** A dash stands for what the card does not tell. */
export function GpuTable(props: IGpuTableProps): JSX.Element | null {
  const { gpus, trans } = props;
  if (gpus.length === 0) {
    return null;
  }
  const known = (value: number | null, unit: string): string =>
    value === null ? '–' : trans.__('%1 %2', Math.round(value), unit);
  return (
    <Table
      caption={trans.__('GPUs')}
      heads={[
        trans.__('Worker'),
        trans.__('GPU'),
        trans.__('Busy'),
        trans.__('Memory'),
        trans.__('Power'),
        trans.__('Temperature'),
        trans.__('Remarks')
      ]}
    >
      {gpus.map((gpu, index) => (
        <tr key={`${gpu.worker} ${index}`}>
          <td>{gpu.worker}</td>
          <td>{placeOf(gpu)}</td>
          <td>{known(gpu.utilization, '%')}</td>
          <td>
            {gpu.memory_total === 0
              ? '–'
              : trans.__(
                  '%1 of %2',
                  bytes(gpu.memory_used),
                  bytes(gpu.memory_total)
                )}
          </td>
          <td>{known(gpu.power, 'W')}</td>
          <td>{known(gpu.temperature, '°C')}</td>
          <td>{remarksOn(gpu, trans)}</td>
        </tr>
      ))}
    </Table>
  );
}

function placeOf(gpu: IGpuReading): string {
  const index = gpu.index === null ? '' : `#${gpu.index}`;
  return [gpu.name, index, gpu.host].filter(Boolean).join(' ');
}

function remarksOn(gpu: IGpuReading, trans: TranslationBundle): string {
  const errors = gpu.ecc_errors ?? 0;
  return [
    gpu.slowed.length > 0
      ? trans.__('slowed by %1', gpu.slowed.join(', '))
      : '',
    errors > 0 ? trans._n('%1 memory error', '%1 memory errors', errors) : '',
    ...(gpu.xids ?? []).map(xid => `XID ${xid}`)
  ]
    .filter(Boolean)
    .join('; ');
}
