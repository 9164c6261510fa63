/** An error in the words of the server: message, hint and evidence. */

import * as React from 'react';

import { ApiError, asError } from '../model/api';

export function FailureView(props: { error: unknown }): JSX.Element {
  const { error } = props;
  const api = error instanceof ApiError ? error : null;
  return (
    <div className="jp-gpucluster-Failure">
      <p>{asError(error).message}</p>
      {api !== null && api.hint !== '' && <p>{api.hint}</p>}
      {api !== null && api.detail !== '' && <pre>{api.detail}</pre>}
    </div>
  );
}
