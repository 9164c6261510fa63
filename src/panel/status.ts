/** The item in the status bar: how many clusters there are, and how far their workers are. */

import type { IStatusBar } from '@jupyterlab/statusbar';
import type { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget, UseSignal } from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import * as React from 'react';

import { CommandIDs } from '../model/commandIds';
import type { IClustersModel } from '../model/tokens';
import { StatusView } from './statusView';
import { totalWords } from '../model/words';

const ITEM_ID = 'jupyter-gpucluster:status';
const ITEM_RANK = 20;

interface IStatusOptions {
  bar: IStatusBar;
  model: IClustersModel;
  commands: CommandRegistry;
  trans: TranslationBundle;
}

/** Add the item, which is there as long as a cluster lives. */
export function addStatusItem(options: IStatusOptions): void {
  const { bar, model, commands, trans } = options;
  const item = ReactWidget.create(
    React.createElement(UseSignal<IClustersModel, void>, {
      signal: model.changed,
      children: () =>
        React.createElement(StatusView, {
          model,
          trans,
          onClick: () => void commands.execute(CommandIDs.showPanel)
        })
    })
  );
  bar.registerStatusItem(ITEM_ID, {
    item,
    align: 'left',
    rank: ITEM_RANK,
    isActive: () => totalWords(model.clusters, trans) !== '',
    activeStateChanged: model.changed
  });
  const watch = model.watch();
  item.disposed.connect(() => watch.dispose());
}
