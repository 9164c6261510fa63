import {
  MimeModel,
  RenderMimeRegistry,
  standardRendererFactories
} from '@jupyterlab/rendermime';
import type { PartialJSONObject } from '@lumino/coreutils';
import { CommandRegistry } from '@lumino/commands';
import { Widget } from '@lumino/widgets';
import { fireEvent, screen } from '@testing-library/dom';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { CommandIDs } from '../../model/commandIds';
import { ClustersModel } from '../../model/model';
import { OUTPUT_TYPE, showOutputs } from '../output';
import { aCluster, FakeServer, trans } from '../../__tests__/fakes';

let server: FakeServer;
let model: ClustersModel;
let rendermime: RenderMimeRegistry;
let shown: Widget | null = null;
const executed = vi.fn();

beforeEach(() => {
  server = new FakeServer();
  model = new ClustersModel({ api: server.api });
  const commands = new CommandRegistry();
  for (const id of [
    CommandIDs.openDetails,
    CommandIDs.openDashboard,
    CommandIDs.connect,
    CommandIDs.stop
  ]) {
    commands.addCommand(id, {
      execute: args => executed(id, args.cluster) as unknown
    });
  }
  rendermime = new RenderMimeRegistry({
    initialFactories: standardRendererFactories
  });
  showOutputs(rendermime, { model, commands, trans });
});

afterEach(() => {
  shown?.dispose();
  model.dispose();
  vi.clearAllMocks();
});

/** Draw an output the way a notebook does, trusted or not. */
async function draw(live: PartialJSONObject): Promise<void> {
  const data = { [OUTPUT_TYPE]: live, 'text/html': '<p>as it was</p>' };
  expect(rendermime.preferredMimeType(data, 'ensure')).toBe(OUTPUT_TYPE);
  const renderer = rendermime.createRenderer(OUTPUT_TYPE);
  shown = renderer;
  Widget.attach(renderer, document.body);
  await renderer.renderModel(new MimeModel({ data }));
}

const output = { clusters: [{ id: 'c1', name: 'quiet-fox' }], words: 'Ready.' };

describe('an output of the magic', () => {
  it('shows its cluster as it is now, and again when that changes', async () => {
    server.clusters = [aCluster()];
    await draw(output);
    await screen.findByText('2 of 2 workers ready');
    screen.getByText('Ready.');
    server.clusters = [
      aCluster({ phase: 'stopped', ended: 1_700_000_000, dashboard: null })
    ];
    await model.refresh();
    await screen.findByText('Stopped');
    for (const name of ['Dashboard', 'Connect', 'Stop']) {
      expect(screen.queryByText(name)).toBeNull();
    }
  });

  it('keeps what the cell printed', async () => {
    await draw(output);
    expect((await screen.findByText('as it was')).closest('details')).not.toBe(
      null
    );
  });

  it('leads to details and dashboard, connects and stops', async () => {
    server.clusters = [aCluster()];
    await draw(output);
    fireEvent.click(await screen.findByText('Details'));
    fireEvent.click(screen.getByText('Dashboard'));
    fireEvent.click(screen.getByText('Connect'));
    fireEvent.click(screen.getByText('Stop'));
    expect(executed.mock.calls).toEqual([
      [CommandIDs.openDetails, 'c1'],
      [CommandIDs.openDashboard, 'c1'],
      [CommandIDs.connect, 'c1'],
      [CommandIDs.stop, 'c1']
    ]);
  });

  it('says that its cluster is gone', async () => {
    await draw(output);
    await screen.findByText('quiet-fox is gone.');
  });

  it.each([{}, { clusters: 'x' }, { clusters: [null], words: 3 }])(
    'survives what somebody else wrote: %j',
    async live => {
      await draw(live);
      await screen.findByText('as it was');
    }
  );
});
