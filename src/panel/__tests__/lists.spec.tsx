import {
  act,
  cleanup,
  fireEvent,
  render,
  screen
} from '@testing-library/react';
import { UseSignal } from '@jupyterlab/ui-components';
import * as React from 'react';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { ClustersModel } from '../../model/model';
import { ClusterList } from '../clusters';
import { ProfileList } from '../profiles';
import {
  aCluster,
  aProfile,
  FakeServer,
  someActions,
  trans
} from '../../__tests__/fakes';

let server: FakeServer;
let model: ClustersModel;
const actions = someActions();

beforeEach(() => {
  server = new FakeServer();
  model = new ClustersModel({ api: server.api });
});

afterEach(() => {
  cleanup();
  model.dispose();
  vi.clearAllMocks();
});

function renderClusters(): void {
  render(
    <UseSignal signal={model.changed}>
      {() => (
        <ClusterList
          model={model}
          actions={actions}
          revealed=""
          onRevealed={() => undefined}
          trans={trans}
        />
      )}
    </UseSignal>
  );
}

describe('the list of clusters', () => {
  it('says that it is looking until the server has answered', () => {
    renderClusters();
    screen.getByText('Looking for clusters…');
    expect(screen.queryByText(/No cluster/)).toBeNull();
  });

  it('offers a start where there is no cluster', async () => {
    renderClusters();
    await act(() => model.refresh());
    screen.getByText(/^No cluster yet/);
    fireEvent.click(screen.getByRole('button', { name: 'New GPU cluster…' }));
    expect(actions.newCluster).toHaveBeenCalledOnce();
  });

  it('never says that there is no cluster when it cannot know', async () => {
    server.reachable = false;
    renderClusters();
    await act(() => model.refresh());
    screen.getByText('The clusters cannot be shown.');
    expect(screen.queryByText(/No cluster/)).toBeNull();
    server.reachable = true;
    fireEvent.click(screen.getByRole('button', { name: 'Try again' }));
    await screen.findByText(/^No cluster yet/);
  });

  it('keeps ended clusters apart', async () => {
    server.clusters = [
      aCluster(),
      aCluster({ id: 'c2', name: 'old', phase: 'stopped', ended: 1 })
    ];
    renderClusters();
    await act(() => model.refresh());
    const lists = screen
      .getAllByRole('article')
      .map(card => card.closest('ul')?.previousElementSibling?.textContent);
    expect(lists[1]).toBe('History');
    expect(lists[0]).not.toBe('History');
  });

  it('announces a change of phase, but not what was there before', async () => {
    server.clusters = [aCluster({ phase: 'starting' })];
    await model.refresh();
    renderClusters();
    expect(screen.getByRole('status').textContent).toBe('');
    server.clusters = [aCluster({ phase: 'running' })];
    await act(() => model.refresh());
    expect(screen.getByRole('status').textContent).toBe('quiet-fox: Running');
  });

  it('keeps the focus when a refresh draws the card anew', async () => {
    server.clusters = [aCluster()];
    await model.refresh();
    renderClusters();
    const button = screen.getByRole('button', { name: /^Connect/ });
    button.focus();
    server.clusters = [aCluster({ id: 'c0' }), aCluster({ revision: 9 })];
    await act(() => model.refresh());
    expect(document.activeElement).toBe(button);
  });

  it('moves the focus along with a card that ends, and to the list when it goes', async () => {
    server.clusters = [aCluster()];
    await model.refresh();
    renderClusters();
    screen.getByRole('button', { name: /^Stop/ }).focus();
    server.clusters = [aCluster({ phase: 'stopped', ended: 1 })];
    await act(() => model.refresh());
    expect(document.activeElement).toBe(screen.getByRole('article'));
    server.clusters = [];
    await act(() => model.refresh());
    expect(document.activeElement?.className).toBe('jp-gpucluster-List');
  });
});

describe('the list of profiles', () => {
  function renderProfiles(onStart = vi.fn()): void {
    render(
      <UseSignal signal={model.changed}>
        {() => <ProfileList model={model} onStart={onStart} trans={trans} />}
      </UseSignal>
    );
  }

  it('says what workers are, and starts from a profile', async () => {
    const onStart = vi.fn();
    renderProfiles(onStart);
    await act(() => model.loadProfiles());
    screen.getByText('CPU workers on this machine: there is no GPU.');
    fireEvent.click(
      screen.getByRole('button', { name: 'Start on This machine' })
    );
    expect(onStart).toHaveBeenCalledWith(aProfile());
  });

  it('warns of traffic that anybody could read', async () => {
    server.profiles = [aProfile(), aProfile({ name: 'b', encrypted: false })];
    renderProfiles();
    await act(() => model.loadProfiles());
    expect(screen.getAllByText('not encrypted')).toHaveLength(1);
  });

  it('names file, line and column of what cannot be read', async () => {
    server.routes['GET profiles'] = () => ({
      body: {
        profiles: [],
        announcement: 'Maintenance on Monday.',
        problems: [
          { file: '/etc/a.yaml', line: 3, column: 5, message: 'unknown key' }
        ]
      }
    });
    renderProfiles();
    await act(() => model.loadProfiles());
    screen.getByText('There is no profile that can be used.');
    screen.getByText('/etc/a.yaml:3:5: unknown key');
    screen.getByText('Maintenance on Monday.');
  });

  it('can be asked for again when it failed', async () => {
    server.reachable = false;
    renderProfiles();
    await act(() => model.loadProfiles());
    server.reachable = true;
    fireEvent.click(screen.getByRole('button', { name: 'Try again' }));
    await screen.findByText('This machine');
  });
});
