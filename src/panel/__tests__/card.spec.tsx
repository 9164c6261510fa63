import {
  cleanup,
  fireEvent,
  render,
  screen,
  waitFor
} from '@testing-library/react';
import * as React from 'react';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { ApiError } from '../../model/api';
import type { ICluster, Phase } from '../../model/tokens';
import { ClusterCard } from '../card';
import { moment } from '../../model/words';
import { aCluster, aLoss, someActions, trans } from '../../__tests__/fakes';

const NOW = 1_700_000_200;

let done: ReturnType<typeof someActions>;

beforeEach(() => {
  done = someActions();
});

afterEach(cleanup);

function card(cluster: ICluster, reveal = false, open = true): JSX.Element {
  return (
    <ClusterCard
      cluster={cluster}
      actions={done}
      now={NOW}
      open={open}
      onFold={onFold}
      reveal={reveal}
      onRevealed={() => undefined}
      trans={trans}
    />
  );
}

const onFold = vi.fn();

function button(name: RegExp): HTMLElement {
  return screen.getByRole('button', { name });
}

function isDisabled(name: RegExp): boolean {
  return button(name).getAttribute('aria-disabled') === 'true';
}

describe('a card', () => {
  it('tells name, phase, since when, workers and memory', () => {
    render(card(aCluster()));
    const text = screen.getByRole('article', { name: 'quiet-fox' }).textContent;
    expect(text).toContain('Running');
    expect(text).toContain('for 3 min');
    expect(text).toContain('2 of 2 workers ready');
    expect(text).toContain('Memory: 3.0 GiB of 8.0 GiB');
  });

  it('gives the numbers while not all workers are ready', () => {
    const workers = { asked: 5, pending: 1, starting: 1, ready: 2, lost: 1 };
    render(card(aCluster({ phase: 'degraded', workers })));
    const list = screen.getByRole('list', { name: 'Workers' });
    expect(list.textContent).toBe(
      '2 ready1 starting1 waiting1 lost5 requested'
    );
  });

  it('warns of what a user would not expect', () => {
    render(
      card(aCluster({ encrypted: false, simulated: true, survives: false }))
    );
    expect(screen.getByRole('list', { name: 'Remarks' }).textContent).toBe(
      'simulationnot encryptedends with Jupyter'
    );
  });

  it('says that the batch system is silent', () => {
    render(card(aCluster({ stale_since: NOW - 60 })));
    screen.getByText(/has not answered since/);
  });

  it('takes the focus when it is revealed', () => {
    render(card(aCluster(), true));
    expect(document.activeElement).toBe(screen.getByRole('article'));
  });

  it('passes its cluster to what a button does', () => {
    const cluster = aCluster();
    render(card(cluster));
    fireEvent.click(button(/^Dashboard/));
    fireEvent.click(button(/^Connect/));
    fireEvent.click(button(/^Stop/));
    expect(done.openDashboard).toHaveBeenCalledWith(cluster);
    expect(done.connect).toHaveBeenCalledWith(cluster);
    expect(done.stop).toHaveBeenCalledWith(cluster);
  });

  it('offers nothing that its cluster cannot do, and keeps the focus', () => {
    const view = render(card(aCluster()));
    button(/^Stop/).focus();
    view.rerender(
      card(aCluster({ phase: 'stopping', phase_since: NOW, dashboard: null }))
    );
    for (const name of [/^Dashboard/, /^Connect/, /^Scale/, /^Stop/]) {
      expect(isDisabled(name)).toBe(true);
    }
    fireEvent.click(button(/^Stop/));
    expect(done.stop).not.toHaveBeenCalled();
    expect(document.activeElement).toBe(button(/^Stop/));
  });

  it('offers force only where a stop is not confirmed for long', () => {
    const stopping = aCluster({ phase: 'stopping', phase_since: NOW - 20 });
    const view = render(card(stopping));
    expect(isDisabled(/^Stop/)).toBe(true);
    const stuck = { ...stopping, phase_since: NOW - 300 };
    view.rerender(card(stuck));
    fireEvent.click(button(/^Stop by force/));
    expect(done.stopByForce).toHaveBeenCalledWith(stuck);
  });

  it('of a cluster that somebody else started offers to detach it', () => {
    const cluster = aCluster({ backend: 'existing' });
    render(card(cluster));
    for (const name of [/^Scale/, /^Stop/]) {
      expect(screen.queryByRole('button', { name })).toBeNull();
    }
    fireEvent.click(button(/^Detach/));
    expect(done.detach).toHaveBeenCalledWith(cluster);
  });

  it('says why the dashboard of such a cluster is not shown', () => {
    const cluster = aCluster({ backend: 'existing', dashboard: null });
    const view = render(card(cluster));
    expect(isDisabled(/^Dashboard/)).toBe(true);
    expect(button(/^Dashboard/).title).toMatch(/trust_dashboard/);
    view.rerender(card({ ...cluster, dashboard: '/dashboard/' }));
    expect(button(/^Dashboard/).title).toBe('Show the plots of Dask');
  });

  it('of an ended cluster gives the reason, the log and a way to forget it', () => {
    const cluster = aCluster({
      phase: 'failed',
      ended: NOW,
      reason: 'The head was killed.'
    });
    render(card(cluster));
    screen.getByText('The head was killed.');
    expect(screen.queryByRole('button', { name: /^Stop/ })).toBeNull();
    fireEvent.click(button(/^Fix and retry/));
    fireEvent.click(button(/^Show log/));
    fireEvent.click(button(/^Remove/));
    expect(done.fix).toHaveBeenCalledWith(cluster);
    expect(done.showLog).toHaveBeenCalledWith(cluster);
    expect(done.forget).toHaveBeenCalledWith(cluster);
  });
});

describe('a card of a cluster that waits', () => {
  const cluster = aCluster({
    phase: 'pending',
    reason: 'The partition is full.',
    workers: { asked: 8, pending: 8, starting: 0, ready: 0, lost: 0 }
  });

  it('says how old the answer of the batch system is', () => {
    render(card({ ...cluster, listed: 1_700_000_005 }));
    screen.getByText(
      `Queue as of ${new Date(1_700_000_005_000).toLocaleTimeString()}`
    );
  });

  it('says since when and why in one line, and how to change it', async () => {
    render(card(cluster));
    expect(screen.getByRole('article').textContent).toContain(
      'Waiting 3 min: the partition is full.'
    );
    fireEvent.click(button(/^Edit and resubmit/));
    fireEvent.click(button(/^Cancel/));
    expect(done.resubmit).toHaveBeenCalledWith(cluster);
    expect(done.stop).toHaveBeenCalledWith(cluster);
    done.isAwaited.mockReturnValue(true);
    fireEvent.click(button(/^Tell me when/));
    await waitFor(() =>
      expect(button(/^Tell me when/).getAttribute('aria-pressed')).toBe('true')
    );
  });
});

describe('a card of a cluster with GPUs', () => {
  const clock = (name: string, ends: number | null) => ({
    name,
    seconds: 3600,
    ends
  });

  it('tells their use, the GPU-hours, and which clock ends first', () => {
    const gpu = (utilization: number | null) => ({
      worker: 'w',
      host: '',
      index: 0,
      name: 'A',
      utilization,
      memory_used: 1024 ** 3,
      memory_total: 4 * 1024 ** 3,
      power: null,
      temperature: null,
      slowed: [],
      ecc_errors: null,
      xids: []
    });
    render(
      card(
        aCluster({
          unit: 'GPUs',
          gpus: [gpu(40), gpu(60), gpu(null)],
          gpu_hours: 3.21,
          gpu_hours_estimate: 16,
          gpu_words: '1 GPU held',
          clocks: [
            clock('maximum lifetime', NOW + 7200),
            clock('walltime', NOW + 300),
            clock('idle time-out', null)
          ]
        })
      )
    );
    screen.getByText('GPUs: 50 % busy, 3.0 GiB of 12 GiB');
    screen.getByText('Idle: 1 GPU held');
    fireEvent.click(button(/^Shrink/));
    expect(screen.getByRole('form')).toBeDefined();
    fireEvent.click(button(/^Stop .* idle$/));
    expect(done.stop).toHaveBeenCalledOnce();
    screen.getByText('3.2 GPU-hours so far, at most 16');
    const end = screen.getByText(/^Ends at .* \(walltime\)$/);
    screen.getByText('5 min left');
    expect(end.dataset.soon).toBe('true');
  });
});

describe('a card as a line', () => {
  it('has name, state, numbers and the time that is left', () => {
    const clocks = [{ name: 'maximum lifetime', ends: NOW + 2520 }];
    render(card(aCluster({ clocks }), false, false));
    const text = screen.getByRole('article').textContent ?? '';
    expect(text).toContain('quiet-fox42 min leftRunning');
    expect(text).toContain('2 of 2 workers ready');
    expect(text).not.toContain('Memory');
    const fold = screen.getByRole('button');
    expect(fold.getAttribute('aria-expanded')).toBe('false');
    fireEvent.click(fold);
    expect(onFold).toHaveBeenCalledOnce();
  });

  it('opens its menu at the pointer, unless with Shift', () => {
    const cluster = aCluster();
    render(card(cluster, false, false));
    const article = screen.getByRole('article');
    fireEvent.contextMenu(article, { shiftKey: true });
    expect(done.showMore).not.toHaveBeenCalled();
    fireEvent.contextMenu(article, { clientX: 7 });
    expect(done.showMore).toHaveBeenCalledWith(
      cluster,
      article,
      expect.objectContaining({ clientX: 7 })
    );
  });

  it.each([
    [{ tasks: 0 }, null],
    [
      { tasks: 410, tasks_done: 213, busy: 0.97 },
      'Tasks: 213 of 410 done, threads 97 % busy'
    ],
    [{ tasks: 4, tasks_done: 4, busy: 0 }, 'Tasks: 4 of 4 done']
  ])('opened, tells how far its tasks are: %j', (changes, words) => {
    render(card(aCluster(changes)));
    const line = screen.queryByText(/^Tasks/);
    expect(line?.textContent ?? null).toBe(words);
  });
});

describe('a card of a cluster that has lost workers', () => {
  const at = moment(aLoss().time);

  it('tells the loss before everything else, with what replaces it', () => {
    render(
      card(
        aCluster({
          phase: 'degraded',
          reason: 'Other jobs are before it in the queue.',
          unit: 'GPUs',
          workers: { asked: 4, pending: 4, starting: 0, ready: 0, lost: 0 },
          loss: aLoss()
        })
      )
    );
    const told =
      `demo01 failed at ${at}: 4 GPUs lost with what was in their memory; ` +
      '4 replacements are waiting.';
    expect(screen.getByRole('note').textContent).toBe(`${told}Dismiss`);
    const text = screen.getByRole('article').textContent ?? '';
    expect(text.indexOf(told)).toBeLessThan(text.indexOf('Degraded'));
    expect(text).toContain('Other jobs are before it');
  });

  it.each([
    [
      { nodes: ['n1', 'n2'], waiting: 0, starting: 1 },
      `n1, n2 failed at ${at}: 4 GPUs lost with what was in their memory; 1 replacement is starting.`
    ],
    [
      { nodes: ['n1', 'n2', 'n3', 'n4', 'n5'], waiting: 0, replaced: 4 },
      `n1, n2, n3 and 2 more failed at ${at}: 4 GPUs lost with what was in their memory; 4 replacements are ready.`
    ],
    [
      { requeued: true, state: 'unknown', cause: '' },
      `Requeued at ${at}: 4 GPUs on demo01 lost with what was in their memory; 4 replacements are waiting.`
    ],
    [
      {
        state: 'out_of_memory',
        workers: 1,
        unit: 'workers' as const,
        waiting: 0,
        cause: 'It used more than 16 GiB.'
      },
      `Out of memory at ${at}: 1 worker on demo01 lost with what was in its memory.It used more than 16 GiB.`
    ],
    [
      { state: 'failed', connected: false, cause: 'No module.', nodes: [] },
      `Failed at ${at}: 4 GPUs lost before they were ready; 4 replacements are waiting.No module.`
    ]
  ])('names how and where: %j', (changes, told) => {
    render(card(aCluster({ loss: aLoss(changes) })));
    expect(screen.getByRole('note').textContent).toBe(`${told}Dismiss`);
  });

  it('says nothing of it once the user has put it aside', () => {
    const cluster = aCluster({ loss: aLoss() });
    render(card(cluster));
    fireEvent.click(button(/^Dismiss the loss/));
    expect(done.dismissLoss).toHaveBeenCalledWith(cluster);
    done.isLossDismissed.mockReturnValue(true);
    cleanup();
    render(card(cluster));
    expect(screen.queryByRole('note')).toBeNull();
  });

  it('says nothing of it once the cluster has ended', () => {
    const ended = { phase: 'failed', ended: NOW, loss: aLoss() } as const;
    render(card(aCluster(ended)));
    expect(screen.queryByRole('note')).toBeNull();
  });
});

describe('a card of a cluster that stops', () => {
  const gone = { asked: 3, pending: 0, starting: 0, ready: 0, lost: 0 };

  it.each([
    ['as its head counts', { ...gone, ending: 3 }],
    ['as heads of older versions count', { ...gone, lost: 3 }]
  ])('shows what is ending, %s, and no loss', (_, workers) => {
    render(card(aCluster({ phase: 'stopping', workers })));
    const list = screen.getByRole('list', { name: 'Workers' });
    expect(list.textContent).toBe('3 ending');
    const article = screen.getByRole('article');
    expect(article.querySelector('[data-kind="ending"]')).not.toBeNull();
    expect(article.querySelector('[data-kind="lost"]')).toBeNull();
  });
});

describe('details of a card', () => {
  it('name the end of a job with its time, and whether another follows', () => {
    const ends = NOW + 2520;
    const clock = { seconds: 3600, ends, job: 'gpc-c1-1_0' };
    const view = (follows: boolean | null): JSX.Element =>
      card(aCluster({ clocks: [{ ...clock, name: 'long', follows }] }));
    const { rerender } = render(view(true));
    const label = screen.getByText('Job ends');
    const told = (): string | null | undefined =>
      label.nextElementSibling?.textContent;
    expect(told()).toBe(`${moment(ends)} (a new one follows), 42 min left`);
    rerender(view(false));
    expect(told()).toBe(`${moment(ends)} (no new one follows), 42 min left`);
    rerender(view(null));
    expect(told()).toBe(`${moment(ends)}, 42 min left`);
    expect(screen.queryByText('long')).toBeNull();
  });
});

describe('what happened meanwhile', () => {
  it('is on the card until it is put aside', () => {
    done.news.mockReturnValue('started 14:02, 1 worker replaced');
    render(card(aCluster()));
    screen.getByText('Since you were away: started 14:02, 1 worker replaced');
    fireEvent.click(button(/^Dismiss the summary/));
    expect(done.dismissNews).toHaveBeenCalled();
  });
});

describe('scaling', () => {
  function workersField(): HTMLInputElement {
    return screen.getByRole('spinbutton', { name: 'Workers' });
  }

  function open(cluster = aCluster()): void {
    render(card(cluster));
    fireEvent.click(button(/^Scale/));
  }

  it('shows what would change, then asks for it and closes', async () => {
    open();
    fireEvent.change(workersField(), { target: { value: '1' } });
    screen.getByText(
      'From 2 to 1: 1 worker fewer. Results move to those that stay.'
    );
    fireEvent.click(button(/^Apply/));
    await waitFor(() => expect(screen.queryByRole('spinbutton')).toBeNull());
    expect(done.scale).toHaveBeenCalledWith(aCluster(), { workers: 1 });
    expect(document.activeElement).toBe(button(/^Scale/));
  });

  it('between two bounds asks for a range', async () => {
    open();
    fireEvent.click(screen.getByRole('checkbox'));
    const field = screen.getByRole('spinbutton', { name: 'Minimum' });
    fireEvent.change(field, { target: { value: '1' } });
    screen.getByText('Grows and shrinks with the load: 1 to 2 workers.');
    fireEvent.click(button(/^Apply/));
    await waitFor(() =>
      expect(done.scale).toHaveBeenCalledWith(aCluster(), {
        minimum: 1,
        maximum: 2
      })
    );
  });

  it('beyond the limit is told and cannot be asked for', () => {
    open();
    fireEvent.change(workersField(), { target: { value: '5' } });
    expect(screen.getByRole('alert').textContent).toBe(
      'This profile allows at most 4.'
    );
    fireEvent.click(button(/^Apply/));
    fireEvent.submit(screen.getByRole('form'));
    expect(done.scale).not.toHaveBeenCalled();
  });

  it('shows a refusal beside the number and stays open', async () => {
    done.scale.mockRejectedValue(
      new ApiError('No room.', { detail: 'target', status: 409 })
    );
    open();
    fireEvent.change(workersField(), { target: { value: '3' } });
    fireEvent.click(button(/^Apply/));
    expect((await screen.findByRole('alert')).textContent).toBe('No room.');
    expect(workersField().getAttribute('aria-invalid')).toBe('true');
  });

  it('ends with Escape, which gives the focus back', () => {
    open();
    fireEvent.keyDown(workersField(), { key: 'Escape' });
    expect(screen.queryByRole('spinbutton')).toBeNull();
    expect(document.activeElement).toBe(button(/^Scale/));
  });
});

describe('any sequence of states', () => {
  const phases: Phase[] = [
    'pending',
    'starting',
    'running',
    'degraded',
    'stopping',
    'stopped',
    'failed',
    'unreachable'
  ];

  /** A generator that gives the same numbers each time (Park and Miller). */
  function numbers(seed: number): (below: number) => number {
    let state = seed;
    return below => {
      state = (state * 48271) % 2147483647;
      return state % below;
    };
  }

  function anyCluster(draw: (below: number) => number): ICluster {
    const phase = phases[draw(phases.length)];
    const ended = phase === 'stopped' || phase === 'failed';
    const [pending, starting, ready, lost] = [0, 0, 0, 0].map(() => draw(4));
    const reachable = !ended && draw(2) === 1;
    const lookedAt = phase === 'running' || phase === 'unreachable';
    return aCluster({
      phase,
      phase_since: NOW - draw(240),
      backend: lookedAt && draw(3) === 0 ? 'existing' : 'local',
      ended: ended ? NOW : null,
      reason: draw(2) === 1 ? 'A reason.' : '',
      workers: { asked: draw(5), pending, starting, ready, lost },
      memory_limit: draw(2) * 1e9,
      memory_used: draw(3) * 1e9,
      scheduler_address: reachable ? 'tls://127.0.0.1:1' : '',
      dashboard: reachable ? '/dashboard/' : null,
      stale_since: draw(2) === 1 ? NOW : null,
      gpu_hours: draw(3) / 7,
      clocks: Array.from({ length: draw(3) }, (_, index) => ({
        name: `clock ${index}`,
        seconds: 60,
        ends: draw(2) === 1 ? NOW + draw(9000) : null
      }))
    });
  }

  it.each([1, 2, 3, 4])('(%i) leads to no impossible card', seed => {
    const draw = numbers(seed * 7919);
    const view = render(card(anyCluster(draw)));
    for (let step = 0; step < 100; step++) {
      const cluster = anyCluster(draw);
      view.rerender(card(cluster));
      const scale = document.querySelector('[aria-label^="Scale"]');
      if (scale !== null && draw(2) === 1) {
        fireEvent.click(scale);
      }
      expectPossible(cluster);
    }
  });

  // By selectors: four hundred looks by role would take half a minute.
  function expectPossible(cluster: ICluster): void {
    const labels = [...document.querySelectorAll('button')].map(
      item => item.textContent
    );
    const ended = cluster.phase === 'stopped' || cluster.phase === 'failed';
    expect(labels.includes('Remove from history')).toBe(ended);
    const queued = cluster.phase === 'pending' && cluster.workers.ready === 0;
    const ours = cluster.backend !== 'existing';
    const stuck =
      cluster.phase === 'stopping' && NOW - cluster.phase_since > 120;
    expect(labels.filter(label => /^Stop|^Detach/.test(label))).toEqual(
      ended || queued
        ? []
        : [ours ? (stuck ? 'Stop by force' : 'Stop') : 'Detach']
    );
    expect(labels.includes('Scale')).toBe(!ended && !queued && ours);
    expect(labels.includes('Tell me when it is ready')).toBe(queued);
    expect(labels.includes('Fix and retry')).toBe(cluster.phase === 'failed');
    expect(labels.includes('Start again')).toBe(cluster.phase === 'stopped');
    const text = document.body.textContent;
    expect(text.includes('Ends at')).toBe(
      !ended && cluster.clocks.some(clock => clock.ends !== null)
    );
    expect(text).not.toMatch(/NaN|undefined|null/);
    expect(document.querySelectorAll('strong')).toHaveLength(1);
    if (ended || queued || cluster.phase === 'stopping') {
      expect(document.querySelector('form')).toBeNull();
    }
    const dashboard = document.querySelector('[aria-label^="Dashboard"]');
    expect(dashboard?.getAttribute('aria-disabled')).toBe(
      ended || queued ? undefined : String(cluster.dashboard === null)
    );
    const widths = [
      ...document.querySelectorAll<HTMLElement>('.jp-gpucluster-Bar > span')
    ].reduce((sum, part) => sum + parseFloat(part.style.width), 0);
    expect(widths).toBeLessThanOrEqual(100.001);
  }
});
