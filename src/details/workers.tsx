/** The workers of a cluster, the worst first, with what can be done about one. */

import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import type {
  ICluster,
  IClustersModel,
  IGpuReading,
  IWorker
} from '../model/tokens';
import { amount, bytes, duration, isConnectable } from '../model/words';
import { Button } from '../ui/button';
import { confirmed } from '../ui/dialogs';
import { showFailure } from '../ui/failure';
import { useLoaded } from '../ui/loaded';
import { Table } from '../ui/table';
import { Shortened } from '../ui/timeline';

/** Workers report every half second to every few seconds, by their number. */
const SILENT_SECONDS = 15;

interface IWorkersProps {
  cluster: ICluster;
  model: IClustersModel;
  trans: TranslationBundle;
}

export function Workers(props: IWorkersProps): JSX.Element {
  const { cluster, model, trans } = props;
  const live = isConnectable(cluster);
  const { value, failure } = useLoaded(
    () => model.api.workers(cluster.id),
    // As often as the page asks for clusters.
    live ? JSON.stringify([cluster.id, model.lastAnswer]) : ''
  );
  if (!live || value === null || value.length === 0) {
    return (
      <p role="status">
        {live && failure !== null
          ? failure.message
          : live && value === null
            ? trans.__('Asking the server…')
            : trans.__('No worker is connected.')}
      </p>
    );
  }
  const gpus = new Map(cluster.gpus.map(gpu => [gpu.worker, gpu]));
  return (
    <>
      {failure !== null && <p role="alert">{failure.message}</p>}
      <Shortened items={worstFirst(value)} trans={trans}>
        {workers => (
          <Table
            name={trans.__('Workers of %1', cluster.name)}
            caption={trans.__('Workers')}
            heads={[
              trans.__('Worker'),
              trans.__('Node'),
              gpus.size > 0 && trans.__('GPU'),
              trans.__('Memory'),
              trans.__('Tasks'),
              trans.__('Last heard'),
              trans.__('Actions')
            ]}
          >
            {workers.map(worker => (
              <tr key={worker.name}>
                <td>{worker.name}</td>
                <td>{worker.host}</td>
                {gpus.size > 0 && (
                  <td>{gpuWords(gpus.get(worker.name), trans)}</td>
                )}
                <td>{memoryWords(worker, trans)}</td>
                <td>{worker.tasks}</td>
                <td data-bad={isBad(worker)}>{heardWords(worker, trans)}</td>
                <td className="jp-gpucluster-Jobs-actions">
                  <WorkerButtons {...props} worker={worker} />
                </td>
              </tr>
            ))}
          </Table>
        )}
      </Shortened>
    </>
  );
}

function isBad(worker: IWorker): boolean {
  return worker.silent > SILENT_SECONDS || worker.status !== 'running';
}

/** Silent ones, then those that Dask has paused, then those with the least memory left. */
function worstFirst(workers: IWorker[]): IWorker[] {
  const rank = (worker: IWorker): number =>
    (worker.silent > SILENT_SECONDS ? 4 : 0) +
    (worker.status === 'running' ? 0 : 2) +
    worker.memory_used / (worker.memory_limit || Infinity);
  return [...workers].sort((a, b) => rank(b) - rank(a));
}

function WorkerButtons(
  props: IWorkersProps & { worker: IWorker }
): JSX.Element {
  const { cluster, model, worker, trans } = props;
  const change = async (
    kind: 'drop' | 'restart',
    title: string,
    body: string,
    accept: string
  ): Promise<void> => {
    const refuse = trans.__('Keep it');
    try {
      if (await confirmed({ title, body, refuse, accept, warn: true })) {
        await model.changeWorker(cluster.id, kind, worker.name);
      }
    } catch (error) {
      await showFailure(error, trans);
    }
  };
  return (
    <>
      <Button
        label={trans.__('Restart')}
        name={trans.__('Restart %1', worker.name)}
        tip={trans.__('Restart this worker with empty memory')}
        onClick={() =>
          void change(
            'restart',
            trans.__('Restart %1?', worker.name),
            trans.__(
              'Results in its memory are lost; Dask computes them again.'
            ),
            trans.__('Restart worker')
          )
        }
      />
      <Button
        label={trans.__('Give back')}
        name={trans.__('Give back %1', worker.name)}
        tip={trans.__('End its job, and keep the cluster smaller')}
        why={worker.can_be_dropped ? '' : whyKept(cluster, trans)}
        onClick={() =>
          void change(
            'drop',
            trans.__('Give %1 back?', worker.name),
            trans.__(
              'Its results move to other workers, and its job ends. The cluster keeps %1.',
              amount(
                Math.max(0, cluster.target.maximum - worker.per_job),
                cluster.unit,
                trans
              )
            ),
            trans.__('Give back')
          )
        }
      />
    </>
  );
}

/** Why a worker cannot be given back. */
function whyKept(cluster: ICluster, trans: TranslationBundle): string {
  const { minimum, maximum } = cluster.target;
  return minimum === maximum
    ? trans.__(
        'Its job cannot be given back: it belongs to a group, holds the scheduler, or is ending.'
      )
    : trans.__(
        'This cluster scales automatically. Give it a fixed number first.'
      );
}

function gpuWords(
  gpu: IGpuReading | undefined,
  trans: TranslationBundle
): string {
  if (gpu === undefined) {
    return '–';
  }
  const index = gpu.index === null ? '' : `#${gpu.index}`;
  const place = [gpu.name, index].filter(Boolean).join(' ');
  return gpu.utilization === null
    ? place
    : trans.__('%1, %2 % busy', place, Math.round(gpu.utilization));
}

function memoryWords(worker: IWorker, trans: TranslationBundle): string {
  const used = bytes(worker.memory_used);
  return worker.memory_limit === 0
    ? used
    : trans.__('%1 of %2', used, bytes(worker.memory_limit));
}

/** "3 s ago"; with Dask's own word where it is not the usual one. */
function heardWords(worker: IWorker, trans: TranslationBundle): string {
  const ago = trans.__('%1 ago', duration(worker.silent, trans));
  return worker.status === 'running'
    ? ago
    : trans.__('%1, %2', ago, worker.status);
}
