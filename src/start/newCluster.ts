/** The dialog that starts a cluster; it stays open until the server has accepted. */

import { Dialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget, UseSignal } from '@jupyterlab/ui-components';
import { UUID } from '@lumino/coreutils';
import * as React from 'react';

import { errorsOf, fieldsOf } from './blame';
import { KeyDialog } from '../ui/dialogs';
import type { FieldErrors, IDraft } from './draft';
import {
  check,
  checkName,
  draftFor,
  draftLike,
  newestOf,
  preferredEnvironment,
  preferredProfile,
  requestOf,
  scriptRequestOf,
  trialOf
} from './draft';
import { isEnded } from '../model/words';
import type {
  ICluster,
  IClustersModel,
  IProfile,
  IStartRequest
} from '../model/tokens';
import { NewClusterForm } from './form';
import type { IScriptPreview } from '../ui/script';

interface INewClusterOptions {
  model: IClustersModel;
  trans: TranslationBundle;
  /** Name of the profile to offer first. */
  profile?: string;
  /** Name of the kernel to offer first. */
  kernel?: string;
  /** A cluster whose start to repeat. */
  like?: ICluster;
  /** Whether that one still waits, and goes when the new one is accepted. */
  replace?: boolean;
  /** What went wrong the last time, beside the field that may be the reason. */
  trouble?: FieldErrors;
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
      title: body.heading,
      body,
      buttons: [
        Dialog.cancelButton({ label: trans.__('Cancel') }),
        Dialog.okButton({ label: body.verb })
      ],
      focusNodeSelector: body.focus
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
    this._replace = options.replace === true;
    this._errors = options.trouble ?? NO_ERRORS;
    const profile = preferredProfile(
      this._profiles,
      options.like?.profile ?? options.profile,
      newestOf(this._model.clusters)?.profile,
      this._model.inside !== null
    );
    if (profile !== undefined) {
      const name = options.like?.name ?? '';
      const again = options.like?.profile === profile.name;
      this._draft = this._firstDraft(profile, {
        ...this._draft,
        name: again && !this._taken.includes(name) ? name : ''
      });
    }
    this._kernel = options.kernel ?? '';
    this._model
      .loadEnvironments()
      .then(() => {
        this._draft = this._withEnvironment(this._draft);
        this.update();
      })
      .catch((error: unknown) => this._showErrors(errorsOf(error, [])));
  }

  get heading(): string {
    if (this._like === undefined) {
      return this._trans.__('New GPU cluster');
    }
    return this._replace
      ? this._trans.__('Edit and resubmit %1', this._like.name)
      : this._trans.__('Start a cluster like %1', this._like.name);
  }

  get verb(): string {
    return this._replace ? this._trans.__('Resubmit') : this._trans.__('Start');
  }

  /** What takes the focus at first. */
  get focus(): string {
    const [path] = Object.keys(this._errors);
    return path
      ? `[data-path="${path}"]`
      : 'input[type="radio"]:checked, .jp-gpucluster-Form input';
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
    const errors = {
      ...check(this._draft, profile, this._trans),
      ...checkName(this._draft.name, this._taken, this._trans)
    };
    if (Object.keys(errors).length > 0) {
      this._showErrors(errors);
      return false;
    }
    this._busy = true;
    try {
      this._started = await this._start(
        requestOf(this._draft, this._requestId)
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
          inside: this._model.inside,
          failure: this._model.profilesFailure,
          environments: this._model.environments,
          errors: this._errors,
          taken: this._taken,
          script: this._script(),
          values: profile => this._model.api.values(profile),
          capacity: profile => this._model.api.capacity(profile),
          draftFor: profile => this._firstDraft(profile, this._draft),
          trans: this._trans,
          onChange: edit => this._change(edit(this._draft))
        })
    });
  }

  /** What the script depends on; null while something is missing that has no default. */
  private _script(): IScriptPreview | null {
    const profile = this._profile;
    if (profile === undefined) {
      return null;
    }
    const errors = check(this._draft, profile, this._trans);
    const draft = trialOf(this._draft, profile, errors);
    if (Object.keys(check(draft, profile, this._trans)).length > 0) {
      return null;
    }
    const request = scriptRequestOf(draft);
    return {
      key: JSON.stringify([profile.name, request]),
      load: () => this._model.api.script(profile.name, request)
    };
  }

  private get _profiles(): ReadonlyArray<IProfile> {
    return this._model.profiles ?? [];
  }

  /** Names of other clusters that live. */
  private get _taken(): string[] {
    return this._model.clusters
      .filter(
        ({ id, phase }) =>
          !isEnded(phase) && !(this._replace && id === this._like?.id)
      )
      .map(({ name }) => name);
  }

  private get _profile(): IProfile | undefined {
    return this._profiles.find(item => item.name === this._draft.profile);
  }

  /** What was chosen for the profile the last time, else its own defaults. */
  private _firstDraft(profile: IProfile, kept: IDraft): IDraft {
    const last =
      this._like?.profile === profile.name
        ? this._like
        : newestOf(this._model.clusters, profile.name);
    return last === undefined
      ? draftFor(profile, kept)
      : draftLike(last, profile, kept);
  }

  /** Start what was asked for; what it replaces goes only once the new one is accepted. */
  private async _start(request: IStartRequest): Promise<ICluster> {
    const old = this._replace ? this._like : undefined;
    if (old === undefined) {
      return this._model.start(request);
    }
    const sameName = request.name === old.name;
    if (sameName) {
      await this._model.rename(old.id, `${old.name}-replaced`);
    }
    let cluster: ICluster;
    try {
      cluster = await this._model.start(request);
    } catch (error) {
      if (sameName) {
        await this._model.rename(old.id, old.name);
      }
      throw error;
    }
    await this._model.stop(old.id);
    return cluster;
  }

  private _withEnvironment(draft: IDraft): IDraft {
    const profile = this._profiles.find(item => item.name === draft.profile);
    const environments = this._model.environments;
    if (profile === undefined || environments === null) {
      return draft;
    }
    const last = this._like ?? newestOf(this._model.clusters, profile.name);
    const same = environments.find(item => item.python === last?.python);
    const wanted = [draft.environment, same?.name ?? '', this._kernel];
    const environment = preferredEnvironment(environments, profile, wanted);
    return { ...draft, environment };
  }

  private _change(draft: IDraft): void {
    this._draft = this._withEnvironment(draft);
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
  private readonly _replace: boolean;
  // One for the dialog's whole life: trying again after a lost answer must not start a second cluster.
  private readonly _requestId = UUID.uuid4();
  private _draft: IDraft = {
    profile: '',
    environment: '',
    name: '',
    amounts: { adaptive: false, workers: '1', minimum: '0', maximum: '1' },
    options: {}
  };
  private _errors: FieldErrors;
  private _started: ICluster | null = null;
  private _busy = false;
}
