/** Tells the user about a request that failed: what, the way out, and the evidence. */

import { Dialog, showDialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import * as React from 'react';

import { FailureView } from './failureView';

export async function showFailure(
  error: unknown,
  trans: TranslationBundle
): Promise<void> {
  await showDialog({
    title: trans.__('That did not work'),
    body: ReactWidget.create(React.createElement(FailureView, { error })),
    buttons: [Dialog.okButton({ label: trans.__('Close') })]
  });
}
