/** The dialog that writes a profile for a queue of a batch system; nothing is submitted. */

import { Dialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget, UseSignal } from '@jupyterlab/ui-components';
import * as React from 'react';

import { errorsOf } from './blame';
import type { FieldErrors } from './draft';
import { preferredEnvironment } from './draft';
import { KeyDialog } from '../ui/dialogs';
import type { ISetUpDraft, ISurvey } from './setUpForm';
import { GPU_WORKERS, isOpen, queueOf, SetUpForm } from './setUpForm';
import type {
  IClustersModel,
  IProposedProfile,
  ISetUpRequest
} from '../model/tokens';

interface ISetUpOptions {
  model: IClustersModel;
  trans: TranslationBundle;
  /** Name of the kernel to offer first. */
  kernel?: string;
}

const TEST = 1;

/**
 * Ask for a queue, and save a profile for it.
 *
 * @returns the profile's name, or null where none was saved.
 */
export async function askSetUp(options: ISetUpOptions): Promise<string | null> {
  const body = new SetUpBody(options);
  // eslint-disable-next-line jupyter/require-disposable-ownership -- it ends itself once it is answered
  const dialog = new SetUpDialog(body, options.trans);
  await dialog.launch();
  return body.saved;
}

class SetUpDialog extends KeyDialog<null> {
  constructor(body: SetUpBody, trans: TranslationBundle) {
    super({
      title: trans.__('Set up a batch system'),
      body,
      buttons: [
        Dialog.cancelButton({ label: trans.__('Cancel') }),
        Dialog.createButton({
          label: trans.__('Test'),
          accept: false,
          caption: trans.__(
            'The batch system checks the job script; no job is submitted'
          )
        }),
        Dialog.okButton({ label: trans.__('Save and start…') })
      ]
    });
    this._form = body;
    this.addClass('jp-gpucluster-Dialog');
  }

  override resolve(index?: number): void {
    if (index === 0) {
      super.resolve(index);
      return;
    }
    void this._form.submit(index === TEST ? 'check' : 'save').then(saved => {
      if (saved && !this.isDisposed) {
        super.resolve(index);
      }
    });
  }

  private readonly _form: SetUpBody;
}

class SetUpBody extends ReactWidget implements Dialog.IBodyWidget<null> {
  constructor(options: ISetUpOptions) {
    super();
    this._model = options.model;
    this._trans = options.trans;
    void this._ask();
    const kernel = options.kernel ?? '';
    this._model
      .loadEnvironments()
      .then(() => {
        this._draft.environment ??= preferredEnvironment(
          this._model.environments ?? [],
          GPU_WORKERS,
          [kernel]
        );
      })
      .catch((error: unknown) => {
        this._draft.environment ??= '';
        this._errors = errorsOf(error, []);
      })
      .finally(() => this.update());
  }

  /** The name of the profile that was saved; null until then. */
  get saved(): string | null {
    return this._saved;
  }

  getValue(): null {
    return null;
  }

  /** Let the batch system check the profile, or save it; say whether it was saved. */
  async submit(action: 'check' | 'save'): Promise<boolean> {
    const request = this._request();
    if (this._busy !== null) {
      return false;
    }
    const errors = this._missing();
    if (request === null || Object.keys(errors).length > 0) {
      this._change({ errors });
      return false;
    }
    this._change({ busy: action, tried: null, errors: {} });
    try {
      const tried = await this._model.api.setUp({ ...request, [action]: true });
      this._saved = tried.saved === '' ? null : tried.profile;
      this._change({ tried });
    } catch (error) {
      this._change({ errors: errorsOf(error, ['profile', 'account']) });
    } finally {
      this._change({ busy: null });
      if (action === 'save') {
        // The dialog may be closed by now, and the profile be saved all the same.
        void this._model.loadProfiles();
      }
    }
    return this._saved !== null;
  }

  protected override render(): JSX.Element {
    const request = this._request();
    return React.createElement(UseSignal<IClustersModel, void>, {
      signal: this._model.changed,
      children: () =>
        React.createElement(SetUpForm, {
          survey: this._survey,
          titles: this._model.withoutProfile,
          draft: this._draft,
          environments: this._model.environments,
          request,
          propose: () => this._model.api.setUp(request as ISetUpRequest),
          tried: this._tried,
          busy: this._busy,
          errors: this._errors,
          trans: this._trans,
          onAsk: () => void this._ask(),
          onChange: change => {
            this._draft = { ...this._draft, ...change };
            this._change({ tried: null, errors: {} });
          }
        })
    });
  }

  private async _ask(): Promise<void> {
    this._survey = { ...this._survey, asking: true, failure: null };
    this.update();
    try {
      const systems = await this._model.api.queues();
      this._survey = { systems, failure: null, asking: false };
      const usable = systems
        .flatMap(system => system.queues)
        .filter(isOpen)
        .map(queue => queue.profile);
      const { profile } = this._draft;
      if (profile === '' && usable.length === 1) {
        this._draft = { ...this._draft, profile: usable[0] };
      } else if (!usable.includes(profile)) {
        this._draft = { ...this._draft, profile: '', account: '' };
      }
    } catch (error) {
      const failure = error instanceof Error ? error : new Error(String(error));
      this._survey = { ...this._survey, failure, asking: false };
    }
    this.update();
  }

  /** What the fields stand for; null while there is no queue or no environment to name. */
  private _request(): ISetUpRequest | null {
    const { profile, account, environment } = this._draft;
    if (profile === '' || environment === undefined) {
      return null;
    }
    const found = this._model.environments?.find(
      item => item.name === environment
    );
    return { profile, account: account.trim(), python: found?.python ?? '' };
  }

  private _missing(): FieldErrors {
    const { profile, account } = this._draft;
    if (profile === '') {
      return { profile: this._trans.__('Choose one.') };
    }
    const several = queueOf(this._survey, profile)?.queue.accounts ?? [];
    return several.length > 1 && account === ''
      ? { account: this._trans.__('Choose the account that is charged.') }
      : {};
  }

  private _change(change: {
    tried?: IProposedProfile | null;
    busy?: 'check' | 'save' | null;
    errors?: FieldErrors;
  }): void {
    this._tried = change.tried === undefined ? this._tried : change.tried;
    this._busy = change.busy === undefined ? this._busy : change.busy;
    this._errors = change.errors ?? this._errors;
    this.update();
  }

  private readonly _model: IClustersModel;
  private readonly _trans: TranslationBundle;
  private _survey: ISurvey = { systems: null, failure: null, asking: false };
  private _draft: ISetUpDraft = { profile: '', account: '' };
  private _tried: IProposedProfile | null = null;
  private _busy: 'check' | 'save' | null = null;
  private _errors: FieldErrors = {};
  private _saved: string | null = null;
}
