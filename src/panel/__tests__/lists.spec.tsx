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
    const row = screen.getByRole('button', { name: 'old' });
    expect(row.closest('table')?.previousElementSibling?.textContent).toBe(
      'History'
    );
    expect(screen.getAllByRole('article')).toHaveLength(1);
    fireEvent.click(row);
    const old = screen.getByRole('article', { name: 'old' });
    expect(old.closest('table')).not.toBeNull();
    fireEvent.click(screen.getByRole('button', { name: 'Card of old' }));
    expect(screen.getAllByRole('article')).toHaveLength(1);
  });

  it('shows at once what has ended just now', async () => {
    const ended = Date.now() / 1000 - 60;
    server.clusters = ['a', 'b'].map((id, index) =>
      aCluster({ id, name: id, phase: 'failed', ended: ended - index })
    );
    renderClusters();
    await act(() => model.refresh());
    screen.getByRole('article', { name: 'a' });
    screen.getByRole('button', { name: 'b' });
  });

  it('from five on is folded, filtered and sorted, except where a user should look', async () => {
    server.clusters = ['e', 'd', 'c', 'b', 'a'].map((id, index) =>
      aCluster({
        id,
        name: id,
        phase: id === 'c' ? 'degraded' : 'running',
        clocks: [{ name: 'maximum lifetime', ends: 2e9 - index }]
      })
    );
    renderClusters();
    await act(() => model.refresh());
    const names = (): string[] =>
      screen.getAllByRole('article').map(card => card.dataset.cluster ?? '');
    expect(names().join('')).toBe('edcba');
    expect(
      screen
        .getAllByRole('button', { expanded: true })
        .map(item => item.getAttribute('aria-label'))
    ).toEqual(['Card of c']);
    const order = screen.getByRole('combobox');
    for (const [value, expected] of [
      ['name', 'abcde'],
      ['phase', 'cedba'],
      ['end', 'abcde']
    ]) {
      fireEvent.change(order, { target: { value } });
      expect(names().join('')).toBe(expected);
    }
    fireEvent.change(screen.getByRole('searchbox'), {
      target: { value: 'degr' }
    });
    expect(names()).toEqual(['c']);
  });

  it('is walked with the arrow keys', async () => {
    server.clusters = [
      aCluster(),
      aCluster({ id: 'c2', name: 'old', phase: 'stopped', ended: 1 })
    ];
    renderClusters();
    await act(() => model.refresh());
    const press = (key: string): void => {
      fireEvent.keyDown(document.activeElement as Element, { key });
    };
    screen.getByRole('article').focus();
    press('ArrowDown');
    expect(document.activeElement?.textContent).toBe('old');
    press('ArrowUp');
    expect(document.activeElement?.getAttribute('aria-label')).toBe(
      'Card of quiet-fox'
    );
    screen.getByRole('button', { name: /^Stop/ }).focus();
    press('ArrowDown');
    expect(document.activeElement?.textContent).toBe('Stop');
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
    expect(document.activeElement?.textContent).toBe('quiet-fox');
    server.clusters = [];
    await act(() => model.refresh());
    expect(document.activeElement?.className).toBe('jp-gpucluster-List');
  });
});

describe('the list of profiles', () => {
  const onSetUp = vi.fn();

  function renderProfiles(onStart = vi.fn()): void {
    const props = { model, onStart, onSetUp, trans };
    render(
      <UseSignal signal={model.changed}>
        {() => <ProfileList {...props} />}
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
    screen.getByText('No profile can be used.');
    screen.getByText('/etc/a.yaml:3:5: unknown key');
    screen.getByText('Maintenance on Monday.');
  });

  it('offers to set up a batch system without a profile', async () => {
    server.routes['GET profiles'] = () => ({
      body: { profiles: [], problems: [], without_profile: ['Slurm'] }
    });
    renderProfiles();
    await act(() => model.loadProfiles());
    screen.getByText('Slurm found, without a profile.');
    fireEvent.click(screen.getByRole('button', { name: 'Set up…' }));
    expect(onSetUp).toHaveBeenCalledOnce();
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
