/** What the user has chosen in the settings, with what holds until they can be read. */

import type { ISettingRegistry } from '@jupyterlab/settingregistry';
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';

const PLUGIN_ID = 'jupyter-gpucluster:plugin';

interface IValues {
  /** Plots of a layout by their paths; empty for the ones that suit the cluster. */
  layout: string[];
  /** Plots that come first, by their paths; empty for the ones that suit the cluster. */
  pinnedPlots: string[];
  /** Whether dashboards switch to the cluster that is worked with. */
  followActiveCluster: boolean;
  /** Whether a notebook that was connected gets its client again when its kernel starts anew. */
  autoConnect: boolean;
}

const DEFAULTS: IValues = {
  layout: [],
  pinnedPlots: [],
  followActiveCluster: false,
  autoConnect: false
};

export class Preferences {
  /** @param registry - null where there are no settings: then the defaults hold */
  constructor(registry: ISettingRegistry | null) {
    void registry?.load(PLUGIN_ID).then(settings => {
      this._settings = settings;
      settings.changed.connect(() => this._changed.emit());
      this._changed.emit();
    });
  }

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get<K extends keyof IValues>(key: K): IValues[K] {
    const value = this._settings?.get(key).composite;
    return (value as IValues[K] | undefined) ?? DEFAULTS[key];
  }

  async set<K extends keyof IValues>(key: K, value: IValues[K]): Promise<void> {
    await this._settings?.set(key, value);
  }

  private readonly _changed = new Signal<this, void>(this);
  private _settings: ISettingRegistry.ISettings | null = null;
}
