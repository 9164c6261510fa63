import { Dialog } from '@jupyterlab/apputils';
import { fireEvent, screen, waitFor } from '@testing-library/dom';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { ClustersModel } from '../model';
import { askNewCluster } from '../newCluster';
import type { ICluster, IStartRequest } from '../tokens';
import {
  aCluster,
  anEnvironment,
  anOption,
  aProfile,
  FakeServer,
  trans
} from './fakes';

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
      options: { account: anOption({ required: true }) }
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
    const option = screen.getByText<HTMLOptionElement>(
      'Bare: dask is missing.'
    );
    expect(option.disabled).toBe(true);
    press('Cancel');
    await result;
  });

  it('counts in GPUs, and tells how many jobs they are', async () => {
    await open('big');
    screen.getByText('GPUs');
    type('target.workers', '6');
    await screen.findByText('8 GPUs = 2 jobs of 4');
    press('Cancel');
    await result;
  });

  it('sends nothing while a needed option is missing', async () => {
    await open('big');
    press('Start');
    await screen.findByText('Needed by this profile.');
    await waitFor(() =>
      expect(document.activeElement).toBe(field('options.account'))
    );
    expect(sent()).toEqual([]);
    type('options.account', 'phys');
    press('Start');
    await result;
    expect(sent()[0].options).toEqual({ account: 'phys' });
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

  it('shows the job script of what is typed, once it is unfolded', async () => {
    server.routes['POST profiles/local/script'] = body => ({
      body: {
        text: '#!/bin/sh',
        command: `submit ${(body as { workers: number }).workers}`
      }
    });
    const route = 'POST profiles/local/script';
    await open();
    expect(server.countOf(route)).toBe(0);
    const fold = screen.getByText('Job script and submit command');
    const details = fold.closest('details') as HTMLDetailsElement;
    details.open = true;
    fireEvent(details, new Event('toggle'));
    await screen.findByText('submit 2');
    screen.getByText('#!/bin/sh');
    type('target.workers', '3');
    await screen.findByText('submit 3');
    type('target.workers', '0');
    await screen.findByText('The fields above are incomplete.');
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
