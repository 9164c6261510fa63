/** The dialog that starts a cluster; it stays open until the server has accepted. */

import { Dialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget, UseSignal } from '@jupyterlab/ui-components';
import { UUID } from '@lumino/coreutils';
import * as React from 'react';

import { KeyDialog } from './dialogs';
import type { FieldErrors, IDraft } from './draft';
import {
  check,
  draftFor,
  draftLike,
  errorsOf,
  fieldsOf,
  preferredEnvironment,
  preferredProfile,
  requestOf,
  scriptRequestOf
} from './draft';
import type { ICluster, IClustersModel, IProfile } from './tokens';
import { NewClusterForm } from './views/form';
import type { IScriptPreview } from './views/script';

interface INewClusterOptions {
  model: IClustersModel;
  trans: TranslationBundle;
  /** Name of the profile to offer first. */
  profile?: string;
  /** Name of the kernel to offer first. */
  kernel?: string;
  /** A cluster whose start to repeat. */
  like?: ICluster;
}

const NO_ERRORS: FieldErrors = {};

/**
 * Ask what to start, and start it.
 *
 * @returns the new cluster, or null where the user thought better of it.
 */
export async function askNewCluster(
  options: INewClusterOptions
): Promise<ICluster | null> {
  const profiles = options.model.loadProfiles();
  if (options.model.profiles === null) {
    await profiles;
  }
  const body = new NewClusterBody(options);
  // eslint-disable-next-line jupyter/require-disposable-ownership -- it ends itself once it is answered
  const dialog = new NewClusterDialog(body, options.trans);
  await dialog.launch();
  return body.started;
}

class NewClusterDialog extends KeyDialog<null> {
  constructor(body: NewClusterBody, trans: TranslationBundle) {
    super({
      title: trans.__('New GPU cluster'),
      body,
      buttons: [
        Dialog.cancelButton({ label: trans.__('Cancel') }),
        Dialog.okButton({ label: trans.__('Start') })
      ],
      focusNodeSelector: 'input[type="radio"]:checked'
    });
    this._form = body;
    this.addClass('jp-gpucluster-Dialog');
  }

  override resolve(index?: number): void {
    if (index === 0) {
      super.resolve(index);
      return;
    }
    void this._form.submit().then(accepted => {
      if (accepted && !this.isDisposed) {
        super.resolve(index);
      }
    });
  }

  private readonly _form: NewClusterBody;
}

class NewClusterBody extends ReactWidget implements Dialog.IBodyWidget<null> {
  constructor(options: INewClusterOptions) {
    super();
    this._model = options.model;
    this._trans = options.trans;
    this._like = options.like;
    const wanted = options.like?.profile ?? options.profile;
    const profile = preferredProfile(this._profiles, wanted);
    if (profile !== undefined) {
      this._draft =
        options.like !== undefined && options.like.profile === profile.name
          ? draftLike(options.like, profile)
          : draftFor(profile);
    }
    this._kernel = options.kernel ?? '';
    this._model
      .loadEnvironments()
      .then(() => this._change(this._draft))
      .catch((error: unknown) => this._showErrors(errorsOf(error, [])));
  }

  /** The cluster that the server has accepted; null until then. */
  get started(): ICluster | null {
    return this._started;
  }

  getValue(): null {
    return null;
  }

  /** Send the draft unless it is wrong or on its way; say whether the server has accepted. */
  async submit(): Promise<boolean> {
    const profile = this._profile;
    if (profile === undefined || this._busy) {
      return false;
    }
    const errors = check(this._draft, profile, this._trans);
    if (Object.keys(errors).length > 0) {
      this._showErrors(errors);
      return false;
    }
    this._busy = true;
    try {
      this._started = await this._model.start(
        requestOf(this._draft, profile, this._requestId)
      );
      return true;
    } catch (error) {
      this._showErrors(errorsOf(error, fieldsOf(this._draft)));
      return false;
    } finally {
      this._busy = false;
    }
  }

  protected override render(): JSX.Element {
    return React.createElement(UseSignal<IClustersModel, void>, {
      signal: this._model.changed,
      children: () =>
        React.createElement(NewClusterForm, {
          draft: this._draft,
          profiles: this._profiles,
          failure: this._model.profilesFailure,
          environments: this._model.environments,
          errors: this._errors,
          script: this._script(),
          trans: this._trans,
          onChange: draft => this._change(draft)
        })
    });
  }

  /** What the script depends on; null while the draft is wrong. */
  private _script(): IScriptPreview | null {
    const profile = this._profile;
    if (
      profile === undefined ||
      Object.keys(check(this._draft, profile, this._trans)).length > 0
    ) {
      return null;
    }
    const request = scriptRequestOf(this._draft, profile);
    return {
      key: JSON.stringify([profile.name, request]),
      load: () => this._model.script(profile.name, request)
    };
  }

  private get _profiles(): ReadonlyArray<IProfile> {
    return this._model.profiles ?? [];
  }

  private get _profile(): IProfile | undefined {
    return this._profiles.find(item => item.name === this._draft.profile);
  }

  private _change(draft: IDraft): void {
    const profile = this._profiles.find(item => item.name === draft.profile);
    const environments = this._model.environments;
    this._draft = draft;
    if (profile !== undefined && environments !== null) {
      const same = environments.find(
        item => item.python === this._like?.python
      );
      const wanted = [draft.environment, same?.name ?? '', this._kernel];
      const environment = preferredEnvironment(environments, profile, wanted);
      this._draft = { ...draft, environment };
    }
    this._errors = NO_ERRORS;
    this.update();
  }

  private _showErrors(errors: FieldErrors): void {
    this._errors = errors;
    this.update();
  }

  private readonly _model: IClustersModel;
  private readonly _trans: TranslationBundle;
  private readonly _kernel: string;
  private readonly _like: ICluster | undefined;
  // One for the dialog's whole life: trying again after a lost answer must not start a second cluster.
  private readonly _requestId = UUID.uuid4();
  private _draft: IDraft = {
    profile: '',
    environment: '',
    name: '',
    amounts: { adaptive: false, workers: '1', minimum: '0', maximum: '1' },
    options: {}
  };
  private _errors: FieldErrors = NO_ERRORS;
  private _started: ICluster | null = null;
  private _busy = false;
}
