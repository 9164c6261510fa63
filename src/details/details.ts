/** Tabs with all that is known of a cluster. */

import { MainAreaWidget } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget, UseSignal } from '@jupyterlab/ui-components';
import * as React from 'react';

import { clusterIcon } from '../ui/icons';
import type { IClustersModel } from '../model/tokens';
import type { ICardActions } from './cardActions';
import { DetailsPage } from './detailsPage';
import { shownName } from '../model/words';

interface IDetailsOptions {
  model: IClustersModel;
  /** The cluster's id. */
  cluster: string;
  actions: ICardActions;
  onShowCluster: (cluster: string) => void;
  trans: TranslationBundle;
}

export class DetailsTab extends MainAreaWidget<DetailsBody> {
  constructor(options: IDetailsOptions) {
    super({ content: new DetailsBody(options) });
    this._options = options;
    this.id = `jupyter-gpucluster-details-${options.cluster}`;
    this.title.icon = clusterIcon;
    this.title.closable = true;
    this.toolbar.hide();
    options.model.changed.connect(this._name, this);
    this._name();
  }

  get cluster(): string {
    return this._options.cluster;
  }

  /** Turn to one of the sections by its name. */
  showSection(section: string): void {
    this.content.section = section;
  }

  private _name(): void {
    const { model, cluster, trans } = this._options;
    const found = model.cluster(cluster);
    const name = found ? shownName(found, trans) : cluster;
    this.title.label = trans.__('%1: details', name);
    this.title.caption = trans.__('Jobs, timeline and logs of %1', name);
  }

  private readonly _options: IDetailsOptions;
}

class DetailsBody extends ReactWidget {
  constructor(private readonly _options: IDetailsOptions) {
    super();
    this.addClass('jp-gpucluster-DetailsTab');
    const watch = _options.model.watch();
    this.disposed.connect(() => watch.dispose());
  }

  set section(section: string) {
    this._section = section;
    this.update();
  }

  protected override render(): JSX.Element {
    return React.createElement(UseSignal<IClustersModel, void>, {
      signal: this._options.model.changed,
      children: () =>
        React.createElement(DetailsPage, {
          ...this._options,
          section: this._section,
          onSection: section => {
            this.section = section;
          }
        })
    });
  }

  private _section = 'jobs';
}
