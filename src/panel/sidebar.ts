/** The panel in the left area: clusters and the profiles to start them from. */

import type { IStateDB } from '@jupyterlab/statedb';
import type { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget, SidePanel, UseSignal } from '@jupyterlab/ui-components';
import type { IDisposable } from '@lumino/disposable';
import type { Message } from '@lumino/messaging';
import type { AccordionPanel } from '@lumino/widgets';
import * as React from 'react';

import { clusterIcon } from '../ui/icons';
import type { IClustersModel, IProfile } from '../model/tokens';
import type { IListActions } from './clusters';
import { ClusterList } from './clusters';
import { ProfileList } from './profiles';

const PANEL_ID = 'jupyter-gpucluster-panel';
const STATE_KEY = 'jupyter-gpucluster:panel';

/** How the parts share the panel. */
interface IDivision {
  sizes: number[];
  /** Indices of the parts that are folded. */
  folded: number[];
}

interface IClustersPanelOptions {
  model: IClustersModel;
  actions: IListActions;
  /** Null where nothing is remembered from page to page. */
  state: IStateDB | null;
  trans: TranslationBundle;
}

/** Asks for fresh state only while it can be seen. */
export class ClustersPanel extends SidePanel {
  constructor(options: IClustersPanelOptions) {
    super();
    const { model, actions, trans } = options;
    this._model = model;
    this.id = PANEL_ID;
    this.addClass('jp-gpucluster-Panel');
    this.title.icon = clusterIcon;
    this.title.caption = trans.__('GPU clusters');
    this.node.tabIndex = -1;
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', trans.__('GPU clusters'));
    this._clusters = new ClustersSection(model, actions, trans);
    this.addWidget(this._clusters);
    this.addWidget(
      new ProfilesSection(
        model,
        profile => actions.newCluster(profile.name),
        actions.setUp,
        trans
      )
    );
    void this._remember(options.state);
  }

  /** Show a cluster's card and move the focus to it. */
  reveal(id: string): void {
    this._clusters.reveal(id);
  }

  /** Draw the cards anew, for what the model does not tell of. */
  redraw(): void {
    this._clusters.update();
  }

  override dispose(): void {
    this._watch?.dispose();
    super.dispose();
  }

  /** Who comes by the keyboard goes on from here. */
  protected override onActivateRequest(msg: Message): void {
    super.onActivateRequest(msg);
    // The command palette gives the focus back to the main area after the command.
    requestAnimationFrame(() => {
      if (!this.node.contains(document.activeElement)) {
        this.node.focus();
      }
    });
  }

  protected override onAfterShow(msg: Message): void {
    super.onAfterShow(msg);
    this._begin();
  }

  protected override onAfterAttach(msg: Message): void {
    super.onAfterAttach(msg);
    if (this.isVisible) {
      this._begin();
    }
  }

  protected override onAfterHide(msg: Message): void {
    super.onAfterHide(msg);
    this._watch?.dispose();
    this._watch = null;
  }

  private _begin(): void {
    if (this._watch === null) {
      this._watch = this._model.watch();
      if (this._model.profiles === null) {
        void this._model.loadProfiles();
      }
    }
  }

  /** Divide the panel as the user did the last time. */
  private async _remember(state: IStateDB | null): Promise<void> {
    const content = this.content as AccordionPanel;
    const { widgets } = content;
    content.setRelativeSizes([3, 1]);
    const stored = (await state?.fetch(STATE_KEY)) as IDivision | undefined;
    if (stored !== undefined) {
      content.setRelativeSizes(stored.sizes);
      stored.folded.forEach(index => content.collapse(index));
    }
    let sizes = stored?.sizes ?? content.relativeSizes();
    const save = (): void => {
      const folded = [...widgets.keys()].filter(at => widgets[at].isHidden);
      // A part that is folded has no size of its own.
      sizes = folded.length > 0 ? sizes : content.relativeSizes();
      void state?.save(STATE_KEY, { sizes, folded });
    };
    content.handleMoved.connect(save);
    content.expansionToggled.connect(save);
  }

  private readonly _model: IClustersModel;
  private readonly _clusters: ClustersSection;
  private _watch: IDisposable | null = null;
}

class ClustersSection extends ReactWidget {
  constructor(
    private readonly _model: IClustersModel,
    private readonly _actions: IListActions,
    private readonly _trans: TranslationBundle
  ) {
    super();
    this.addClass('jp-gpucluster-Section');
    this.title.label = _trans.__('Clusters');
  }

  reveal(id: string): void {
    this._revealed = id;
    this.update();
  }

  protected override render(): JSX.Element {
    return React.createElement(UseSignal<IClustersModel, void>, {
      signal: this._model.changed,
      children: () =>
        React.createElement(ClusterList, {
          model: this._model,
          actions: this._actions,
          revealed: this._revealed,
          onRevealed: this._onRevealed,
          trans: this._trans
        })
    });
  }

  private readonly _onRevealed = (): void => {
    this._revealed = '';
    this.update();
  };

  private _revealed = '';
}

class ProfilesSection extends ReactWidget {
  constructor(
    private readonly _model: IClustersModel,
    private readonly _onStart: (profile: IProfile) => void,
    private readonly _onSetUp: () => void,
    private readonly _trans: TranslationBundle
  ) {
    super();
    this.addClass('jp-gpucluster-Section');
    this.title.label = _trans.__('Site profiles');
  }

  protected override render(): JSX.Element {
    return React.createElement(UseSignal<IClustersModel, void>, {
      signal: this._model.changed,
      children: () =>
        React.createElement(ProfileList, {
          model: this._model,
          onStart: this._onStart,
          onSetUp: this._onSetUp,
          trans: this._trans
        })
    });
  }
}
