import { Dialog } from '@jupyterlab/apputils';
import { fireEvent, screen, waitFor } from '@testing-library/dom';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { ClustersModel } from '../../model/model';
import { askNewCluster } from '../newCluster';
import type { ICluster, IStartRequest } from '../../model/tokens';
import { moment } from '../../model/words';
import {
  aCluster,
  anEnvironment,
  anOption,
  aProfile,
  FakeServer,
  optionsOf,
  trans
} from '../../__tests__/fakes';

let server: FakeServer;
let model: ClustersModel;
let result: Promise<ICluster | null>;

beforeEach(() => {
  server = new FakeServer();
  server.profiles = [
    aProfile(),
    aProfile({
      name: 'big',
      title: 'Big machine',
      words: 'One worker per GPU.',
      unit: 'GPUs',
      gpus_per_job: 4,
      default_workers: 4,
      limits: { workers: 16, clusters: null },
      options: optionsOf({ account: anOption() }, 'account')
    })
  ];
  server.environments = [
    anEnvironment({
      name: 'bare',
      title: 'Bare',
      suitable: false,
      problems: ['dask is missing.']
    }),
    anEnvironment()
  ];
  server.routes['POST clusters'] = () => ({ status: 201, body: aCluster() });
  model = new ClustersModel({ api: server.api });
});

afterEach(() => {
  Dialog.flush();
  model.dispose();
});

async function open(profile?: string): Promise<void> {
  result = askNewCluster({ model, trans, profile, kernel: 'bare' });
  await waitFor(() =>
    expect(field<HTMLSelectElement>('kernel').value).toBe('python3')
  );
}

function field<T extends HTMLElement = HTMLInputElement>(path: string): T {
  const found = document.querySelector<T>(`[data-path="${path}"]`);
  if (found === null) {
    throw new Error(`no field ${path}`);
  }
  return found;
}

function type(path: string, value: string): void {
  fireEvent.change(field(path), { target: { value } });
}

function press(label: string): void {
  fireEvent.click(screen.getByText(label));
}

function sent(): IStartRequest[] {
  return server.asked
    .filter(item => item.route === 'POST clusters')
    .map(item => item.body as IStartRequest);
}

describe('the dialog for a new cluster', () => {
  it('starts what is offered, and is gone', async () => {
    await open();
    press('Start');
    expect((await result)?.id).toBe('c1');
    expect(sent()).toMatchObject([
      { profile: 'local', kernel: 'python3', target: { workers: 2 } }
    ]);
    expect(document.querySelector('.jp-Dialog')).toBeNull();
  });

  it('starts nothing when it is cancelled', async () => {
    await open();
    press('Cancel');
    expect(await result).toBeNull();
    expect(sent()).toEqual([]);
  });

  it('names why an environment cannot be chosen', async () => {
    await open();
    screen.getByText('Checked: dask 2026.8.0, distributed 2026.8.0');
    screen.getByText('1 kernel cannot run this cluster');
    expect(screen.getByText('Bare').closest('li')?.textContent).toBe(
      'Bare: dask is missing.'
    );
    press('Cancel');
    await result;
  });

  it('warns of a profile whose traffic anybody could read', async () => {
    server.profiles[1].encrypted = false;
    await open();
    expect(
      screen.getByText('not encrypted').closest('label')?.textContent
    ).toContain('Big machine');
    press('Cancel');
    await result;
  });

  it('leads with the GPUs of the job that it is in, and disables what cannot work there', async () => {
    const ends = Date.now() / 1000 + 3600;
    const inside = { name: 'Slurm job 7', nodes: 'n1', ends, gpus: 4 };
    server.profiles = [
      aProfile({ name: 'gpu', title: 'Queue gpu', backend: 'slurm' }),
      aProfile({ unit: 'GPUs' }),
      aProfile({
        name: 'other',
        title: 'Other site',
        backend: 'pbs',
        default: true,
        unusable: 'This node does not have the command qsub.'
      })
    ];
    server.routes['GET profiles'] = () => ({
      body: {
        profiles: server.profiles,
        problems: [],
        inside: { ...inside, gpu_type: 'A100' }
      }
    });
    await open();
    const words = [
      ...document.querySelectorAll('.jp-gpucluster-Choice [role="group"]')
    ].map(group => group.getAttribute('aria-label'));
    expect(words).toEqual([
      `Use this job's GPUs: 4 A100, until ${moment(ends)}, no waiting`,
      'New jobs: queued, charged in addition'
    ]);
    const radio = (name: RegExp): HTMLInputElement =>
      screen.getByLabelText<HTMLInputElement>(name);
    expect(radio(/^This machine/).checked).toBe(true);
    expect(radio(/^Other site/).disabled).toBe(true);
    screen.getByText('This node does not have the command qsub.');
    press('Cancel');
    await result;
  });

  it('suggests what the batch system reports, and marks what it does not', async () => {
    server.profiles[1].options = optionsOf({
      account: anOption({ values: 'accounts' }),
      queue: anOption({
        kind: 'enum',
        title: 'Queue',
        enum: ['gpu', 'old'],
        values: 'queues'
      })
    });
    server.routes['GET profiles/big/values'] = () => ({
      body: {
        title: 'Slurm',
        asked: 1_700_000_000,
        values: { account: ['chem', 'lab1'], queue: ['gpu'] }
      }
    });
    await open('big');
    const help = `Slurm answered at ${moment(1_700_000_000)}.`;
    await waitFor(() => expect(screen.getAllByText(help)).toHaveLength(2));
    const account = field('options.account');
    expect(account.value).toBe('');
    expect(
      [...(account.list?.options ?? [])].map(option => option.value)
    ).toEqual(['chem', 'lab1']);
    expect(
      [...field<HTMLSelectElement>('options.queue').options].map(
        option => option.text
      )
    ).toEqual(['Default', 'gpu', 'old (not one of your queues with GPUs)']);
    type('options.account', 'other');
    expect(account.value).toBe('other');
    press('Cancel');
    await result;
  });

  it('counts in GPUs, and tells how many jobs they are', async () => {
    await open('big');
    screen.getByText('GPUs');
    type('target.workers', '6');
    await screen.findByText('8 GPUs = 2 jobs of 4.');
    press('Cancel');
    await result;
  });

  it('sends nothing while a needed option is missing', async () => {
    await open('big');
    press('Start');
    await screen.findByText('Required.');
    await waitFor(() =>
      expect(document.activeElement).toBe(field('options.account'))
    );
    expect(sent()).toEqual([]);
    type('options.account', 'phys');
    press('Start');
    await result;
    expect(sent()[0].options).toEqual({ account: 'phys' });
  });

  it('draws every kind of option, and tells soon what is wrong with one', async () => {
    server.profiles[1].options = optionsOf(
      {
        account: anOption({ title: 'Project', description: 'Who pays.' }),
        card: anOption({ kind: 'enum', title: 'Card', enum: ['a100', 'h100'] }),
        nodes: anOption({
          kind: 'integer',
          type: 'integer',
          title: 'Nodes',
          allowed: 'a whole number, at most 4',
          maximum: 4,
          default: 2
        }),
        queue: anOption({ kind: 'enum', title: 'Queue', enum: ['short'] }),
        whole: anOption({ kind: 'boolean', type: 'boolean', title: 'Whole' })
      },
      'account',
      'card'
    );
    await open('big');
    const project =
      screen.getByLabelText<HTMLInputElement>('Project (required)');
    expect(project.placeholder).toBe('one line of text');
    expect(project.getAttribute('aria-required')).toBe('true');
    expect(document.getElementById(`${project.id}-help`)?.textContent).toBe(
      'Who pays.'
    );
    const choices = (label: string): string[] =>
      [...screen.getByLabelText<HTMLSelectElement>(label).options].map(
        option => option.text
      );
    expect(choices('Card (required)')).toEqual(['Choose one', 'a100', 'h100']);
    expect(choices('Queue')).toEqual(['Default', 'short']);
    expect(screen.getByLabelText<HTMLInputElement>('Whole').checked).toBe(
      false
    );
    const more = screen.getByText('More options').closest('details');
    expect(more?.contains(screen.getByLabelText('Nodes'))).toBe(true);
    expect(more?.contains(project)).toBe(false);
    expect(more?.open).toBe(false);
    type('options.nodes', '5');
    const alert = await screen.findByText('Give a whole number, at most 4.');
    const nodes = screen.getByLabelText<HTMLInputElement>('Nodes');
    expect(nodes.getAttribute('aria-describedby')).toBe(alert.id);
    expect(nodes.getAttribute('aria-invalid')).toBe('true');
    await waitFor(() => expect(more?.open).toBe(true));
    // Nothing is said of what has not been filled in yet.
    expect(screen.queryByText('Required.')).toBeNull();
    // What is left empty is the profile's to fill in.
    type('options.nodes', '');
    type('options.account', 'phys');
    type('options.card', 'h100');
    fireEvent.click(screen.getByLabelText('Whole'));
    expect(nodes.value).toBe('');
    press('Start');
    await result;
    expect(sent()[0].options).toEqual({
      account: 'phys',
      card: 'h100',
      whole: true
    });
  });

  it('stays open at a refusal, shows it beside its field, and tries again with the same id', async () => {
    server.routes['POST clusters'] = () => ({
      status: 422,
      body: { message: 'Taken.', hint: 'Choose another.', detail: 'name' }
    });
    await open();
    press('Start');
    const alert = await screen.findByText('Taken. Choose another.');
    expect(alert.id).toBe(
      field('name').getAttribute('aria-describedby')?.split(' ').pop()
    );
    server.routes['POST clusters'] = () => ({ status: 201, body: aCluster() });
    type('name', 'other');
    press('Start');
    await result;
    const [first, second] = sent();
    expect(second.name).toBe('other');
    expect(second.request_id).toBe(first.request_id);
  });

  it('sends once, however often Start is pressed', async () => {
    await open();
    press('Start');
    press('Start');
    await result;
    expect(sent()).toHaveLength(1);
  });

  it('does not take Enter on a fold for Start', async () => {
    await open();
    fireEvent.keyDown(screen.getByText('More options'), { key: 'Enter' });
    expect(sent()).toEqual([]);
    press('Cancel');
    await result;
  });

  it('shows the job script of what is typed', async () => {
    server.routes['POST profiles/local/script'] = body => ({
      body: {
        text: '#!/bin/sh',
        command: `submit ${(body as { workers: number }).workers}`
      }
    });
    await open();
    const fold = screen.getByText('Job script and submit command');
    const details = fold.closest('details') as HTMLDetailsElement;
    details.open = true;
    fireEvent(details, new Event('toggle'));
    await screen.findByText('submit 2');
    screen.getByText('#!/bin/sh');
    type('target.workers', '3');
    await screen.findByText('submit 3');
    type('target.workers', '0');
    await screen.findByText('Fix the field above to see the script.');
    press('Cancel');
    await result;
  });

  it('tells what it takes and whether it survives, as the server says', async () => {
    server.routes['POST profiles/big/script'] = () => ({
      body: {
        text: '#!/bin/sh',
        command: 'submit',
        gpu_hours_estimate: 4,
        survives: true,
        survival: 'It has a scope of its own.'
      }
    });
    server.routes['GET profiles/big/capacity'] = () => ({
      body: {
        words: '',
        partitions: [{ name: 'gpu', free: 12, total: 32, unit: 'GPUs' }]
      }
    });
    await open('big');
    type('options.account', 'phys');
    await screen.findByText('4 GPUs = 1 job of 4, up to 4 GPU-hours.');
    screen.getByText('Keeps running without Jupyter: yes.');
    screen.getByText('gpu: 12 of 32 GPUs free');
    press('Cancel');
    await result;
  });

  it('shows what the server says of a field before anything is sent', async () => {
    server.routes['POST profiles/big/script'] = () => ({
      status: 422,
      body: { message: 'No such account.', hint: '', detail: 'options.account' }
    });
    await open('big');
    type('options.account', 'nobody');
    const alert = await screen.findByText('No such account.');
    expect(alert.id).toContain('account');
    expect(sent()).toEqual([]);
    press('Cancel');
    await result;
  });

  it('checks name and amount while they are typed, beside what the server finds', async () => {
    server.clusters = [aCluster()];
    await model.refresh();
    let asked: unknown = null;
    server.routes['POST profiles/big/script'] = body => {
      asked = body;
      return {
        status: 422,
        body: { message: 'No such account.', detail: 'options.account' }
      };
    };
    await open('big');
    type('options.account', 'x1');
    type('target.workers', '17');
    type('name', 'quiet-fox');
    await screen.findByText('This profile allows at most 16.');
    screen.getByText('A cluster of this name is running.');
    await screen.findByText('No such account.');
    // The server checks the rest with the profile's own amount.
    expect(asked).toMatchObject({ workers: 4, options: { account: 'x1' } });
    type('name', '-x');
    await screen.findByText(/^Use letters, digits/);
    type('target.workers', '5');
    await screen.findByText('You get 8 GPUs: each job has 4.');
    press('Start');
    expect(server.countOf('POST clusters')).toBe(0);
    press('Cancel');
    await result;
  });

  it('begins with what was chosen the last time', async () => {
    server.clusters = [
      aCluster({ profile: 'big', created: 1, options: { account: 'old' } }),
      aCluster({
        id: 'c2',
        profile: 'big',
        created: 2,
        options: { account: 'phys' },
        target: { minimum: 8, maximum: 8 }
      })
    ];
    await model.refresh();
    await open('big');
    expect(field('options.account').value).toBe('phys');
    expect(field('target.workers').value).toBe('8');
    expect(field('name').value).toBe('');
    press('Cancel');
    await result;
  });

  it('puts a new cluster in the place of one that waits, under its name', async () => {
    server.routes['PATCH clusters/c1'] = () => ({ body: {} });
    server.routes['DELETE clusters/c1'] = () => ({ status: 202, body: {} });
    server.routes['POST clusters'] = () => ({
      status: 409,
      body: { message: 'Not now.', hint: '', detail: '' }
    });
    const like = aCluster({ phase: 'pending' });
    result = askNewCluster({ model, trans, like, replace: true });
    await screen.findByText('Edit and resubmit quiet-fox');
    await waitFor(() =>
      expect(field<HTMLSelectElement>('kernel').value).toBe('python3')
    );
    press('Resubmit');
    await screen.findByText('Not now.');
    const renamed = (): unknown[] =>
      server.asked
        .filter(item => item.route === 'PATCH clusters/c1')
        .map(item => item.body);
    expect(renamed()).toEqual([
      { name: 'quiet-fox-replaced' },
      { name: 'quiet-fox' }
    ]);
    expect(server.countOf('DELETE clusters/c1')).toBe(0);
    server.routes['POST clusters'] = () => ({
      status: 201,
      body: aCluster({ id: 'c2' })
    });
    press('Resubmit');
    expect((await result)?.id).toBe('c2');
    expect(sent()[1].name).toBe('quiet-fox');
    expect(server.countOf('DELETE clusters/c1')).toBe(1);
  });

  it('reopens at the field that may have made a cluster fail', async () => {
    result = askNewCluster({
      model,
      trans,
      like: aCluster({ profile: 'big', options: { account: 'nobody' } }),
      trouble: { 'options.account': 'Invalid account nobody.' }
    });
    await screen.findByText('Invalid account nobody.');
    await waitFor(() =>
      expect(document.activeElement).toBe(field('options.account'))
    );
    await waitFor(() =>
      expect(field<HTMLSelectElement>('kernel').value).toBe('python3')
    );
    screen.getByText('Invalid account nobody.');
    press('Cancel');
    await result;
  });

  it('repeats the start of another cluster', async () => {
    server.environments.push(
      anEnvironment({ name: 'own', python: '/opt/own/python' })
    );
    result = askNewCluster({
      model,
      trans,
      kernel: 'python3',
      like: aCluster({
        profile: 'big',
        target: { minimum: 1, maximum: 8 },
        options: { account: 'phys', gone: 1 },
        python: '/opt/own/python'
      })
    });
    await waitFor(() =>
      expect(field<HTMLSelectElement>('kernel').value).toBe('own')
    );
    press('Start');
    await result;
    expect(sent()[0]).toMatchObject({
      profile: 'big',
      target: { minimum: 1, maximum: 8 },
      options: { account: 'phys' },
      kernel: 'own'
    });
  });

  it('says why there are no profiles', async () => {
    server.routes['GET profiles'] = () => ({
      status: 500,
      body: { message: 'The profiles are unreadable.', hint: '', detail: '' }
    });
    result = askNewCluster({ model, trans });
    await screen.findByText('The profiles are unreadable.');
    press('Start');
    expect(sent()).toEqual([]);
    press('Cancel');
    await result;
  });

  it('says on top that the server is gone', async () => {
    await open();
    server.reachable = false;
    press('Start');
    await screen.findByText(/The Jupyter server does not answer/);
    press('Cancel');
    await result;
  });
});
