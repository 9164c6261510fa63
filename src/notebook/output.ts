/** Shows outputs of %gpucluster as cards that change with their clusters, whenever they were made. */

import type { IRenderMime, IRenderMimeRegistry } from '@jupyterlab/rendermime';
import type { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget, UseSignal } from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import type { ReadonlyPartialJSONValue } from '@lumino/coreutils';
import type { IDisposable } from '@lumino/disposable';
import type { Message } from '@lumino/messaging';
import { Panel, PanelLayout, Widget } from '@lumino/widgets';
import * as React from 'react';

import { CommandIDs } from '../model/commandIds';
import type { ICluster, IClustersModel } from '../model/tokens';
import type { IOutput, IOutputActions } from './outputView';
import { OutputView } from './outputView';

export const OUTPUT_TYPE = 'application/vnd.jupyter-gpucluster.v1+json';
const STATIC_TYPE = 'text/html';

interface IOutputOptions {
  model: IClustersModel;
  commands: CommandRegistry;
  trans: TranslationBundle;
}

/** Let notebooks show our outputs; those without this extension show the HTML beside it. */
export function showOutputs(
  rendermime: IRenderMimeRegistry,
  options: IOutputOptions
): void {
  rendermime.addFactory(
    {
      // It shows what the server says, and takes ids and names from the notebook as text.
      safe: true,
      mimeTypes: [OUTPUT_TYPE],
      createRenderer: () => new ClusterOutput(rendermime, options)
    },
    0
  );
}

/** Live cards, above what the cell printed when it ran. */
class ClusterOutput extends Panel implements IRenderMime.IRenderer {
  constructor(
    private readonly _rendermime: IRenderMimeRegistry,
    private readonly _options: IOutputOptions
  ) {
    super();
    this.addClass('jp-gpucluster-Output');
  }

  async renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    for (const part of [...this.widgets]) {
      part.dispose();
    }
    const output = outputOf(model.data[OUTPUT_TYPE]);
    this.addWidget(liveCards(output, this._options));
    if (model.data[STATIC_TYPE] !== undefined) {
      const printed = this._rendermime.createRenderer(STATIC_TYPE);
      this.addWidget(folded(printed, this._options.trans));
      await printed.renderModel(model);
    }
  }

  protected override onAfterAttach(msg: Message): void {
    super.onAfterAttach(msg);
    this._watch ??= this._options.model.watch();
  }

  protected override onBeforeDetach(msg: Message): void {
    this._watch?.dispose();
    this._watch = null;
    super.onBeforeDetach(msg);
  }

  private _watch: IDisposable | null = null;
}

function liveCards(output: IOutput, options: IOutputOptions): Widget {
  const { commands, model, trans } = options;
  const run = (command: string) => (cluster: ICluster) => {
    void commands.execute(command, { cluster: cluster.id });
  };
  const actions: IOutputActions = {
    openDetails: run(CommandIDs.openDetails),
    openDashboard: run(CommandIDs.openDashboard),
    connect: run(CommandIDs.connect),
    stop: run(CommandIDs.stop),
    showCluster: run(CommandIDs.showPanel)
  };
  return ReactWidget.create(
    React.createElement(UseSignal<IClustersModel, void>, {
      signal: model.changed,
      children: () =>
        React.createElement(OutputView, { output, model, actions, trans })
    })
  );
}

/** A part that can be unfolded. */
function folded(part: Widget, trans: TranslationBundle): Widget {
  const node = document.createElement('details');
  const summary = document.createElement('summary');
  summary.textContent = trans.__('As it was when the cell ran');
  node.append(summary);
  const box = new Widget({ node });
  box.addClass('jp-gpucluster-Details');
  const layout = new PanelLayout();
  box.layout = layout;
  layout.addWidget(part);
  return box;
}

/** What a notebook holds may have been written by anybody. */
function outputOf(data: ReadonlyPartialJSONValue | undefined): IOutput {
  const { clusters, words } = (data ?? {}) as Record<string, unknown>;
  const items: unknown[] = Array.isArray(clusters) ? clusters : [];
  return {
    clusters: items.map(item => {
      const { id, name } = (item ?? {}) as Record<string, unknown>;
      return { id: String(id), name: String(name) };
    }),
    words: typeof words === 'string' ? words : ''
  };
}
