/** The fields of the dialog that sets up a batch system. */

import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import type { FieldErrors } from './draft';
import { EnvironmentChoice } from './environment';
import { Field, FieldError } from './fields';
import type {
  IEnvironment,
  IProposedProfile,
  ISetUpRequest,
  ISurveyedQueue,
  ISurveyedSystem
} from '../model/tokens';
import { amount, moment } from '../model/words';
import { Button } from '../ui/button';
import { FailureView } from '../ui/failureView';
import { useLoaded } from '../ui/loaded';
import { Code } from '../ui/script';

/** A profile of `setup` has workers with a GPU each. */
export const GPU_WORKERS = { unit: 'GPUs', simulated: false } as const;
const TYPING_MS = 400;

/** What the batch systems answered last, and how the newest question went. */
export interface ISurvey {
  /** Null before the first answer. */
  systems: ISurveyedSystem[] | null;
  failure: Error | null;
  asking: boolean;
}

export interface ISetUpDraft {
  /** Name of the profile of the chosen queue. */
  profile: string;
  account: string;
  /** Undefined while environments are being checked; empty for the server's own Python. */
  environment?: string;
}

interface ISetUpFormProps {
  survey: ISurvey;
  /** Titles of the batch systems that are asked. */
  titles: ReadonlyArray<string>;
  draft: ISetUpDraft;
  environments: ReadonlyArray<IEnvironment> | null;
  /** What the fields stand for; null while they are incomplete. */
  request: ISetUpRequest | null;
  propose: () => Promise<IProposedProfile>;
  /** The answer to the newest test of these fields. */
  tried: IProposedProfile | null;
  busy: 'check' | 'save' | null;
  errors: FieldErrors;
  trans: TranslationBundle;
  onAsk: () => void;
  onChange: (change: Partial<ISetUpDraft>) => void;
}

/** The queue of a profile, with its batch system. */
export function queueOf(
  survey: ISurvey,
  profile: string
): { system: ISurveyedSystem; queue: ISurveyedQueue } | undefined {
  return survey.systems
    ?.flatMap(system => system.queues.map(queue => ({ system, queue })))
    .find(({ queue }) => queue.profile === profile);
}

export function SetUpForm(props: ISetUpFormProps): JSX.Element {
  const { survey, draft, errors, trans, onChange } = props;
  const form = React.useRef<HTMLFormElement>(null);
  React.useEffect(() => {
    const [path] = Object.keys(errors);
    const field = `[data-path="${path}"]:not(:disabled)`;
    form.current?.querySelector<HTMLElement>(field)?.focus();
  }, [errors]);
  const chosen = queueOf(survey, draft.profile);
  return (
    <form
      ref={form}
      className="jp-gpucluster-Form"
      aria-busy={survey.asking}
      onSubmit={event => event.preventDefault()}
    >
      {errors[''] && <FieldError text={errors['']} />}
      <Answers {...props} />
      {survey.systems?.map(system => (
        <QueueChoice key={system.title} system={system} {...props} />
      ))}
      {errors['profile'] && <FieldError text={errors['profile']} />}
      {chosen !== undefined && (
        <>
          <AccountField {...chosen} {...props} />
          <EnvironmentChoice
            profile={GPU_WORKERS}
            environments={props.environments}
            chosen={draft.environment ?? ''}
            trans={trans}
            onChange={environment => onChange({ environment })}
          />
          <Preview title={chosen.system.title} {...props} />
        </>
      )}
    </form>
  );
}

/** Whether the batch systems are asked, answered, or failed to. */
function Answers(props: ISetUpFormProps): JSX.Element {
  const { survey, trans } = props;
  const { systems, failure, asking } = survey;
  if (asking && systems === null) {
    return (
      <p role="status">
        {trans.__(
          'Asking %1. This can take some seconds.',
          props.titles.join(', ') || trans.__('the batch system')
        )}
      </p>
    );
  }
  const silent = systems?.filter(system => system.error !== '') ?? [];
  return (
    <div role="status" className="jp-gpucluster-Answers">
      {failure !== null && <FailureView error={failure} />}
      {silent.map(({ title, error, asked, queues }) => (
        <p key={title}>
          {queues.length === 0
            ? error
            : trans.__(
                '%1 The answers of %2 are from %3.',
                error,
                title,
                moment(asked)
              )}
        </p>
      ))}
      {systems?.length === 0 && (
        <p>
          {trans.__(
            'No batch system that can be asked has its commands on this host.'
          )}
        </p>
      )}
      {systems
        ?.filter(system => system.error === '')
        .map(({ title, asked, queues }) => (
          <p key={title} className="jp-gpucluster-Form-note">
            {queues.length === 0
              ? trans.__('%1 reports no queue with GPUs.', title)
              : trans.__('%1 answered at %2.', title, moment(asked))}
          </p>
        ))}
      <Button
        label={asking ? trans.__('Asking…') : trans.__('Ask again')}
        why={asking ? trans.__('The batch system has not answered yet.') : ''}
        onClick={props.onAsk}
      />
    </div>
  );
}

function QueueChoice(
  props: ISetUpFormProps & { system: ISurveyedSystem }
): JSX.Element | null {
  const { system, draft, trans } = props;
  if (system.queues.length === 0) {
    return null;
  }
  return (
    <fieldset className="jp-gpucluster-Choice">
      <legend>{trans.__('Queue of %1', system.title)}</legend>
      {[...system.queues.filter(isOpen), ...system.queues.filter(isShut)].map(
        queue => (
          <label key={queue.profile} className="jp-gpucluster-Choice-item">
            <input
              type="radio"
              name="jp-gpucluster-setup-queue"
              data-path="profile"
              disabled={isShut(queue)}
              checked={queue.profile === draft.profile}
              onChange={() =>
                props.onChange({ profile: queue.profile, account: '' })
              }
            />
            <span>
              <span className="jp-gpucluster-Choice-title">
                {queueTitle(queue, trans)}
              </span>
              <span className="jp-gpucluster-Choice-words">
                {queueWords(queue, trans)}
              </span>
            </span>
          </label>
        )
      )}
    </fieldset>
  );
}

/** Whether a profile of a queue can be written. */
export function isOpen(queue: ISurveyedQueue): boolean {
  return queue.closed === '' && !queue.exists;
}

function isShut(queue: ISurveyedQueue): boolean {
  return !isOpen(queue);
}

/** "gpu: 4 GPUs a node (h100)". */
function queueTitle(queue: ISurveyedQueue, trans: TranslationBundle): string {
  const gpus = amount(queue.gpus, 'GPUs', trans);
  const name = queue.name || trans.__('All nodes');
  return queue.gpu_type === ''
    ? trans.__('%1: %2 a node', name, gpus)
    : trans.__('%1: %2 a node (%3)', name, gpus, queue.gpu_type);
}

/** "3 GPUs free now. 2 nodes. For all users.", or why it cannot be chosen. */
function queueWords(queue: ISurveyedQueue, trans: TranslationBundle): string {
  if (queue.closed !== '') {
    return trans.__('Not for you: %1.', queue.closed);
  }
  if (queue.exists) {
    return trans.__('There is a profile %1.', queue.profile);
  }
  return [
    queue.free === null
      ? trans.__('Free GPUs are not reported.')
      : trans.__('%1 free now.', amount(queue.free, 'GPUs', trans)),
    queue.nodes > 0 ? trans._n('%1 node.', '%1 nodes.', queue.nodes) : '',
    queue.open_to === '' ? '' : trans.__('For %1.', queue.open_to),
    queue.remark
  ]
    .filter(text => text !== '')
    .join(' ');
}

/** The account that is charged; it is never chosen for the user. */
function AccountField(
  props: ISetUpFormProps & { system: ISurveyedSystem; queue: ISurveyedQueue }
): JSX.Element | null {
  const { system, queue, draft, trans } = props;
  if (queue.accounts.length === 0 && system.question === '') {
    return null;
  }
  const [only] = queue.accounts;
  const offered = queue.accounts.includes(system.offered)
    ? trans.__('Your environment names %1.', system.offered)
    : '';
  const onChange = (
    event: React.ChangeEvent<HTMLInputElement | HTMLSelectElement>
  ): void => props.onChange({ account: event.target.value });
  return (
    <Field
      id="jp-gpucluster-setup-account"
      label={trans.__('Account')}
      help={queue.accounts.length > 1 ? offered : system.question}
      error={props.errors['account']}
    >
      {input =>
        queue.accounts.length > 1 ? (
          <select
            {...input}
            className="jp-mod-styled"
            data-path="account"
            value={draft.account}
            onChange={onChange}
          >
            <option value="">{trans.__('Choose one')}</option>
            {queue.accounts.map(name => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        ) : (
          <input
            {...input}
            className="jp-mod-styled"
            data-path="account"
            type="text"
            spellCheck={false}
            readOnly={only !== undefined}
            value={only ?? draft.account}
            onChange={onChange}
          />
        )
      }
    </Field>
  );
}

/** The profile as it would be saved, and what the batch system said of it. */
function Preview(props: ISetUpFormProps & { title: string }): JSX.Element {
  const { title, request, tried, busy, trans } = props;
  const key = request === null ? '' : JSON.stringify(request);
  const { value, failure } = useLoaded(
    async () => ({ key, proposal: await props.propose() }),
    key,
    TYPING_MS
  );
  const shown = tried ?? (value?.key === key ? value.proposal : null);
  return (
    <>
      <div role="status">
        {busy !== null ? (
          <p>{trans.__('%1 checks the job script…', title)}</p>
        ) : (
          tried !== null && (
            <Verdict title={title} tried={tried} trans={trans} />
          )
        )}
      </div>
      {shown !== null ? (
        <Code label={trans.__('Profile %1', shown.profile)} text={shown.text} />
      ) : failure !== null && key !== '' ? (
        <FailureView error={failure} />
      ) : (
        <p>{trans.__('Writing the profile…')}</p>
      )}
    </>
  );
}

function Verdict(props: {
  title: string;
  tried: IProposedProfile;
  trans: TranslationBundle;
}): JSX.Element | null {
  const { title, tried, trans } = props;
  if (tried.check === null) {
    return null;
  }
  const { result, found, way_out } = tried.check;
  return result === 'failed' ? (
    <FieldError text={`${found} ${way_out}`.trim()} />
  ) : (
    <p>{found || trans.__('%1 cannot check scripts.', title)}</p>
  );
}
