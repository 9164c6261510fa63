import {
  act,
  cleanup,
  fireEvent,
  render,
  screen
} from '@testing-library/react';
import * as React from 'react';
import { afterEach, describe, expect, it, vi } from 'vitest';

import type { IClusterEvent, IJob } from '../../model/tokens';
import { LogView } from '../../ui/log';
import { Timeline } from '../../ui/timeline';
import { aCluster, trans } from '../../__tests__/fakes';

afterEach(() => {
  cleanup();
  vi.useRealTimers();
});

function aJob(changes: Partial<IJob> = {}): IJob {
  return {
    mark: 'gpc-c1-1',
    task: 0,
    state: 'running',
    id: '4711',
    reason: '',
    nodes: ['node7'],
    exit_code: null,
    submitted: 1_700_000_000,
    started: null,
    ended: null,
    cause: '',
    ...changes
  };
}

describe('a timeline', () => {
  function events(count: number): IClusterEvent[] {
    return Array.from({ length: count }, (_, index) => ({
      time: 1_700_000_000 + index,
      kind: 'worker',
      message: `event ${index}`,
      job: ''
    }));
  }

  it('shows each job with state, node and exit code', async () => {
    const source = {
      jobs: () =>
        Promise.resolve([
          aJob(),
          aJob({
            id: '',
            task: 3,
            state: 'out_of_memory',
            nodes: [],
            exit_code: 137,
            cause: 'It used more than it asked for.',
            submitted: 1_700_000_100
          })
        ]),
      events: () => Promise.resolve([])
    };
    render(<Timeline cluster={aCluster()} source={source} trans={trans} />);
    await screen.findByText('4711');
    const rows = screen.getAllByRole('row').map(row => row.textContent);
    expect(rows.slice(1)).toEqual([
      'gpc-c1-1.3out of memory, exit code 137: It used more than it asked for.this machine',
      '4711runningnode7'
    ]);
  });

  it('tells the groups of workers apart where there are several', async () => {
    const jobs = [aJob(), aJob({ id: '4712', task: 1, group: 'cpu' })];
    const source = {
      jobs: () => Promise.resolve(jobs),
      events: () => Promise.resolve([])
    };
    render(<Timeline cluster={aCluster()} source={source} trans={trans} />);
    await screen.findByText('4711');
    const rows = screen.getAllByRole('row').map(row => row.textContent);
    expect(rows).toEqual([
      'JobGroupStateNode',
      '4711–runningnode7',
      '4712cpurunningnode7'
    ]);
  });

  it('has the newest event first, and the oldest on demand', async () => {
    const source = {
      jobs: () => Promise.resolve([]),
      events: () => Promise.resolve(events(20))
    };
    render(<Timeline cluster={aCluster()} source={source} trans={trans} />);
    const list = await screen.findByRole('list', { name: /^Timeline/ });
    expect(list.firstElementChild?.textContent).toContain('event 19');
    expect(screen.queryByText('event 0')).toBeNull();
    fireEvent.click(screen.getByText('Show all 20'));
    screen.getByText('event 0');
  });

  it('is fetched anew when the cluster has changed, and only then', async () => {
    const source = {
      jobs: vi.fn(() => Promise.resolve([])),
      events: vi.fn(() => Promise.resolve(events(1)))
    };
    const timeline = (revision: number): JSX.Element => (
      <Timeline
        cluster={aCluster({ revision })}
        source={source}
        trans={trans}
      />
    );
    const view = render(timeline(1));
    await screen.findByText('event 0');
    view.rerender(timeline(1));
    expect(source.events).toHaveBeenCalledTimes(1);
    view.rerender(timeline(2));
    await vi.waitFor(() => expect(source.events).toHaveBeenCalledTimes(2));
  });

  it('keeps what it showed when the server ceases to answer', async () => {
    const source = {
      jobs: vi.fn(() => Promise.resolve([aJob()])),
      events: () => Promise.resolve([])
    };
    const timeline = (revision: number): JSX.Element => (
      <Timeline
        cluster={aCluster({ revision })}
        source={source}
        trans={trans}
      />
    );
    const view = render(timeline(1));
    await screen.findByText('4711');
    source.jobs.mockRejectedValue(new Error('No answer.'));
    view.rerender(timeline(2));
    expect((await screen.findByRole('alert')).textContent).toBe('No answer.');
    screen.getByText('4711');
  });
});

/** Let time pass, and the view draw after each span. */
async function pass(...spans: number[]): Promise<void> {
  for (const span of spans) {
    await act(() => vi.advanceTimersByTimeAsync(span));
  }
}

describe('a log', () => {
  it('shows only the lines that contain what is searched, whatever its case', async () => {
    const load = (): Promise<string> =>
      Promise.resolve('one\nan Error here\nthree');
    render(<LogView load={load} live={false} trans={trans} />);
    await screen.findByText(/three/);
    fireEvent.change(screen.getByRole('searchbox'), {
      target: { value: 'error' }
    });
    screen.getByText('1 of 3 lines');
    expect(document.querySelector('mark')?.textContent).toBe('Error');
    expect(document.querySelector('pre')?.textContent).not.toContain('three');
  });

  it('is followed until that is turned off', async () => {
    vi.useFakeTimers();
    const load = vi.fn(() => Promise.resolve('line'));
    render(<LogView load={load} live trans={trans} />);
    await pass(100, 2_000, 100, 2_000, 100);
    expect(load).toHaveBeenCalledTimes(3);
    fireEvent.click(screen.getByRole('checkbox', { name: 'Follow' }));
    await pass(100);
    const before = load.mock.calls.length;
    await pass(2_000, 2_000, 2_000);
    expect(load).toHaveBeenCalledTimes(before);
  });

  it('of an ended cluster is read once', async () => {
    vi.useFakeTimers();
    const load = vi.fn(() => Promise.resolve(''));
    render(<LogView load={load} live={false} trans={trans} />);
    await pass(100, 2_000, 2_000);
    expect(load).toHaveBeenCalledTimes(1);
    screen.getByText('Nothing logged yet.');
    expect(screen.queryByLabelText('Follow')).toBeNull();
  });

  it('tells why it cannot be read, and goes on trying', async () => {
    vi.useFakeTimers();
    const load = vi
      .fn<() => Promise<string>>()
      .mockRejectedValueOnce(new Error('No answer.'))
      .mockResolvedValue('back again');
    render(<LogView load={load} live trans={trans} />);
    await pass(100);
    screen.getByText('No answer.');
    await pass(2_000, 100);
    expect(screen.queryByText('No answer.')).toBeNull();
    screen.getByText(/back again/);
  });
});
