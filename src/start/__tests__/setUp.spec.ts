import { Dialog } from '@jupyterlab/apputils';
import { fireEvent, screen, waitFor } from '@testing-library/dom';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { ClustersModel } from '../../model/model';
import type {
  IProposedProfile,
  ISetUpRequest,
  ISurveyedQueue,
  ISurveyedSystem
} from '../../model/tokens';
import { moment } from '../../model/words';
import { askSetUp } from '../setUp';
import { anEnvironment, FakeServer, trans } from '../../__tests__/fakes';

const ASKED = 1_700_000_000;

let server: FakeServer;
let model: ClustersModel;
let result: Promise<string | null>;

function aQueue(changes: Partial<ISurveyedQueue> = {}): ISurveyedQueue {
  return {
    profile: 'slurm-gpu',
    exists: false,
    free: 3,
    name: 'gpu',
    gpus: 4,
    gpu_type: 'h100',
    nodes: 2,
    accounts: ['chem', 'lab1'],
    open_to: 'all users',
    closed: '',
    remark: '',
    ...changes
  };
}

function slurm(
  queues: ISurveyedQueue[],
  changes: Partial<ISurveyedSystem> = {}
): void {
  const system = {
    title: 'Slurm',
    asked: ASKED,
    error: '',
    offered: '',
    question: '',
    queues,
    ...changes
  };
  server.routes['GET setup'] = () => ({ body: { systems: [system] } });
}

/** Answer as the server does; `check` is what Slurm says of a script. */
function proposal(
  check: NonNullable<IProposedProfile['check']>
): (body: unknown) => { body: IProposedProfile } {
  return body => {
    const request = body as ISetUpRequest;
    const asked = request.check || request.save;
    return {
      body: {
        profile: request.profile,
        text: `account: ${request.account}\npython: ${request.python}`,
        accounts: [],
        check: asked ? check : null,
        saved: request.save ? '/home/ada/slurm-gpu.yaml' : ''
      }
    };
  };
}

beforeEach(() => {
  server = new FakeServer();
  server.environments = [
    anEnvironment({
      name: 'bare',
      title: 'Bare',
      gpu_problems: ['dask-cuda is missing.']
    }),
    anEnvironment()
  ];
  slurm([
    aQueue(),
    aQueue({
      profile: 'slurm-long',
      name: 'long',
      accounts: ['chem'],
      free: null
    }),
    aQueue({ profile: 'slurm-x', name: 'x', closed: 'its state is DOWN' }),
    aQueue({ profile: 'slurm-mine', name: 'mine', exists: true })
  ]);
  server.routes['POST setup'] = proposal({
    result: 'ok',
    found: 'Slurm would accept the job.',
    way_out: ''
  });
  model = new ClustersModel({ api: server.api });
});

afterEach(() => {
  Dialog.flush();
  model.dispose();
});

function open(): void {
  result = askSetUp({ model, trans });
}

async function openAndChoose(queue: RegExp): Promise<void> {
  open();
  fireEvent.click(await screen.findByLabelText(queue));
}

function press(label: string): void {
  fireEvent.click(screen.getByText(label));
}

function sent(): ISetUpRequest[] {
  return server.asked
    .filter(item => item.route === 'POST setup')
    .map(item => item.body as ISetUpRequest);
}

async function cancel(): Promise<void> {
  press('Cancel');
  expect(await result).toBeNull();
}

describe('the dialog that sets up a batch system', () => {
  it('says that it asks, then lists the queues with what is free', async () => {
    const answer = server.routes['GET setup'];
    let goOn = (): void => undefined;
    server.routes['GET setup'] = () =>
      new Promise(resolve => {
        goOn = () => resolve(answer(null));
      });
    open();
    await screen.findByText(/^Asking the batch system/);
    await waitFor(() => expect(server.countOf('GET setup')).toBe(1));
    goOn();
    await screen.findByText('gpu: 4 GPUs a node (h100)');
    screen.getByText('3 GPUs free now. 2 nodes. For all users.');
    screen.getByText(/^Free GPUs are not reported\./);
    screen.getByText(`Slurm answered at ${moment(ASKED)}.`);
    const closed = screen.getByLabelText<HTMLInputElement>(/^x:/);
    expect(closed.disabled).toBe(true);
    screen.getByText('Not for you: its state is DOWN.');
    screen.getByText('There is a profile slurm-mine.');
    expect(sent()).toEqual([]);
    await cancel();
  });

  it('shows the profile, tests it, and saves it', async () => {
    await openAndChoose(/^gpu:/);
    await screen.findByText('account:', { exact: false });
    fireEvent.change(await screen.findByLabelText('Account'), {
      target: { value: 'lab1' }
    });
    await screen.findByText(/account: lab1\s+python: \/usr\/bin\/python3/);
    expect(sent().some(({ check, save }) => check || save)).toBe(false);
    press('Test');
    await screen.findByText('Slurm would accept the job.');
    expect(sent().at(-1)).toMatchObject({ account: 'lab1', check: true });
    press('Save and start…');
    expect(await result).toBe('slurm-gpu');
    expect(sent().at(-1)).toMatchObject({ account: 'lab1', save: true });
  });

  it('never chooses one of several accounts', async () => {
    slurm([aQueue()], { offered: 'lab1' });
    open();
    const account = await screen.findByLabelText<HTMLSelectElement>('Account');
    expect(account.value).toBe('');
    screen.getByText('Your environment names lab1.');
    press('Save and start…');
    await screen.findByText('Choose the account that is charged.');
    await waitFor(() => expect(document.activeElement).toBe(account));
    expect(sent().some(({ save }) => save)).toBe(false);
    await cancel();
  });

  it('needs a queue', async () => {
    open();
    await screen.findByText('gpu: 4 GPUs a node (h100)');
    press('Test');
    await screen.findByText('Choose one.');
    await cancel();
  });

  it('stays open at a refusal, and saves nothing', async () => {
    server.routes['POST setup'] = body => {
      const request = body as ISetUpRequest;
      return request.save
        ? { status: 422, body: { message: 'Not there.', detail: 'account' } }
        : proposal({ result: 'failed', found: 'No.', way_out: 'Ask.' })(body);
    };
    await openAndChoose(/^long:/);
    const account = await screen.findByLabelText<HTMLInputElement>('Account');
    expect([account.value, account.readOnly]).toEqual(['chem', true]);
    await screen.findByText(/python: /);
    press('Test');
    await screen.findByText('No. Ask.');
    press('Save and start…');
    await screen.findByText('Not there.');
    await cancel();
  });

  it('closed during a save, shows the saved profile in the list', async () => {
    const answer = server.routes['POST setup'];
    let goOn = (): void => undefined;
    server.routes['POST setup'] = body =>
      (body as ISetUpRequest).save
        ? new Promise(resolve => {
            goOn = () => resolve(answer(body));
          })
        : answer(body);
    await openAndChoose(/^long:/);
    press('Save and start…');
    await waitFor(() => expect(sent().at(-1)?.save).toBe(true));
    await cancel();
    expect(server.countOf('GET profiles')).toBe(0);
    goOn();
    await waitFor(() => expect(server.countOf('GET profiles')).toBe(1));
  });

  it('keeps the chosen queue when it asks again, and clears it once it is gone', async () => {
    await openAndChoose(/^gpu:/);
    fireEvent.change(await screen.findByLabelText('Account'), {
      target: { value: 'lab1' }
    });
    slurm([aQueue({ free: 7 })]);
    press('Ask again');
    await screen.findByText(/^7 GPUs free now/);
    await screen.findByText(/account: lab1/);
    slurm([aQueue({ profile: 'slurm-long', name: 'long' })]);
    press('Ask again');
    const other = await screen.findByLabelText<HTMLInputElement>(/^long:/);
    expect(other.checked).toBe(false);
    press('Ask again');
    await waitFor(() => expect(other.checked).toBe(true));
    const account = await screen.findByLabelText<HTMLSelectElement>('Account');
    expect(account.value).toBe('');
    await cancel();
  });

  it('asks for the account where none is reported', async () => {
    slurm([aQueue({ accounts: [] })], { question: 'Which one is charged?' });
    open();
    fireEvent.change(await screen.findByLabelText('Account'), {
      target: { value: 'abc ' }
    });
    screen.getByText('Which one is charged?');
    await screen.findByText(/account: abc/);
    await cancel();
  });

  it('says that there is nothing to choose from', async () => {
    slurm([]);
    open();
    await screen.findByText('Slurm reports no queue with GPUs.');
    server.routes['GET setup'] = () => ({ body: { systems: [] } });
    press('Ask again');
    await screen.findByText(/^No batch system that can be asked/);
    await cancel();
  });

  it('keeps old answers and says so, whoever does not answer', async () => {
    open();
    await screen.findByText('gpu: 4 GPUs a node (h100)');
    slurm([aQueue()], { error: 'Slurm did not answer scontrol.' });
    press('Ask again');
    await screen.findByText(
      `Slurm did not answer scontrol. The answers of Slurm are from ${moment(ASKED)}.`
    );
    server.reachable = false;
    press('Ask again');
    await screen.findByText('The Jupyter server does not answer.');
    screen.getByText('gpu: 4 GPUs a node (h100)');
    server.reachable = true;
    slurm([], { error: 'Slurm did not answer scontrol.' });
    press('Ask again');
    await screen.findByText('Slurm did not answer scontrol.');
    await cancel();
  });

  it('says why a profile cannot be shown', async () => {
    server.routes['POST setup'] = () => ({
      status: 422,
      body: { message: 'Turned off.', hint: 'Ask.', detail: '' }
    });
    await openAndChoose(/^gpu:/);
    await screen.findByText('Turned off.');
    await cancel();
  });
});
