/** The item in the status bar: how many clusters there are, and how far their workers are. */

import type { IStatusBar } from '@jupyterlab/statusbar';
import type { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget, UseSignal } from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import { Menu } from '@lumino/widgets';
import * as React from 'react';

import { CommandIDs } from '../model/commandIds';
import type { IClustersModel } from '../model/tokens';
import { StatusView } from './statusView';
import { isEnded, totalWords } from '../model/words';

const ITEM_ID = 'jupyter-gpucluster:status';
const ITEM_RANK = 20;

interface IStatusOptions {
  bar: IStatusBar;
  model: IClustersModel;
  commands: CommandRegistry;
  trans: TranslationBundle;
}

/** The clusters that have not ended, each leading to its card, and the way to a new one. */
function openMenu(options: IStatusOptions, anchor: HTMLElement): void {
  const { commands, model } = options;
  const menu = new Menu({ commands });
  for (const cluster of model.clusters) {
    if (!isEnded(cluster.phase)) {
      menu.addItem({
        command: CommandIDs.showPanel,
        args: { cluster: cluster.id }
      });
    }
  }
  menu.addItem({ type: 'separator' });
  menu.addItem({ command: CommandIDs.showPanel });
  menu.addItem({ command: CommandIDs.create });
  menu.aboutToClose.connect(() => requestAnimationFrame(() => menu.dispose()));
  const { left, top } = anchor.getBoundingClientRect();
  menu.open(left, top);
}

/** Add the item, which is there as long as a cluster lives. */
export function addStatusItem(options: IStatusOptions): void {
  const { bar, model, trans } = options;
  const item = ReactWidget.create(
    React.createElement(UseSignal<IClustersModel, void>, {
      signal: model.changed,
      children: () =>
        React.createElement(StatusView, {
          model,
          trans,
          onClick: event => openMenu(options, event.currentTarget)
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
