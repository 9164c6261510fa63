import type { Page } from '@playwright/test';
import { expect, test } from '@playwright/test';

import { Answers, cluster, everyPhase, job, timeline } from './answers';
import { Lab } from './lab';

/** All tests share a page: loading Lab takes longer than what they look at. */
let page: Page;
let lab: Lab;
let answers: Answers;
let loaded = false;

test.beforeAll(async ({ browser }) => {
  page = await browser.newPage();
  lab = new Lab(page);
  answers = new Answers();
  await answers.install(page);
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await page
    .context()
    .route('**/gpucluster/dashboard/**', route =>
      route.fulfill({ contentType: 'text/html', body: '<h1>plots</h1>' })
    );
});

test.afterAll(() => page.close());

test.beforeEach(async () => {
  await page.setViewportSize({ width: 1280, height: 800 });
  answers.clear();
});

/** Show these clusters, in a Lab without anything open. */
async function show(...clusters: object[]): Promise<void> {
  answers.clusters();
  if (loaded) {
    await lab.tidy();
  } else {
    await lab.open();
    loaded = true;
  }
  await expect(lab.panel).toContainText('No cluster yet.');
  await tell(...clusters);
}

/** Let the page know at once how clusters are now. */
async function tell(...clusters: object[]): Promise<void> {
  answers.clusters(...clusters);
  await lab.run('gpucluster:refresh');
}

test('a panel without an answer says that it is looking, then names the silence', async () => {
  const cutClusters = answers.hold('GET clusters');
  const cutProfiles = answers.hold('GET profiles');
  await lab.open();
  loaded = true;
  await expect(lab.panel).toContainText('Looking for clusters…');
  await expect(lab.panel).toContainText('Reading profiles…');
  await lab.screenshot('loading');
  await cutClusters();
  await cutProfiles();
  await expect(lab.panel).toContainText('The clusters cannot be shown.');
  await lab.screenshot('unreachable');
  answers.clear();
  answers.clusters(cluster());
  await lab.button('Try again').first().click();
  await expect(lab.card('quiet-fox')).toBeVisible();
  await lab.run('gpucluster:refresh');
  await expect(
    lab.panel.getByRole('heading', { name: 'This machine' })
  ).toBeVisible();
  // Without a request of the user's.
  answers.cut('GET clusters');
  await expect(lab.panel).toContainText('what you see may be out of date');
  await expect(lab.card('quiet-fox')).toContainText('2 of 2 workers ready');
  await lab.screenshot('stale');
  answers.clusters();
  await lab.button('Try again').click();
});

test('an empty panel says what to do', async () => {
  await show();
  await expect(
    lab.panel.getByRole('heading', { name: 'This machine' })
  ).toBeVisible();
  await expect(lab.button('Try on this machine (2 CPU workers)')).toBeVisible();
  await lab.screenshot('empty');
});

test('every phase has its look', async () => {
  await page.setViewportSize({ width: 1280, height: 1900 });
  await show(...everyPhase);
  for (const phase of [
    'Waiting',
    'Starting',
    'Running',
    'Degraded',
    'Stopping',
    'Unreachable',
    'Failed'
  ]) {
    await expect(
      lab.panel.locator('strong').getByText(phase, { exact: true })
    ).toBeVisible();
  }
  await expect(lab.panel.getByRole('row', { name: 'done-tern' })).toContainText(
    'Stopped'
  );
  await expect(lab.card('limping-heron')).toContainText('not encrypted');
  await expect(lab.card('limping-heron')).toContainText('simulation');
  await expect(lab.card('limping-heron')).toContainText('ends with Jupyter');
  await expect(lab.card('broken-jay')).toContainText('it was killed');
  // It has been stopping for longer than anybody should wait.
  await expect(
    lab.card('leaving-swift').getByRole('button', { name: /^Stop by force/ })
  ).toBeEnabled();
  await lab.screenshot('phases');
});

test('a refusal appears beside its field, and the dialog stays', async () => {
  answers.set(
    'POST clusters',
    {
      message: 'The name is taken.',
      hint: 'Choose another.',
      detail: 'name'
    },
    422
  );
  await show();
  await lab.openDialog();
  await expect(
    lab.dialog.getByLabel('Environment', { exact: true })
  ).toBeEnabled();
  await lab.dialog.getByRole('button', { name: 'Start' }).click();
  await expect(lab.dialog.getByLabel('Name')).toBeVisible();
  await expect(lab.dialog.getByRole('alert')).toHaveText(
    'The name is taken. Choose another.'
  );
  await expect(lab.dialog.getByLabel('Name')).toBeFocused();
  await lab.screenshot('refusal');
  await lab.dialog.getByRole('button', { name: 'Cancel' }).click();
  await expect(lab.dialog).toBeHidden();
});

test('a wrong number is told before anything is sent', async () => {
  answers.set('POST clusters', {}, 500);
  await show();
  await lab.openDialog();
  await lab.workers.fill('0');
  await lab.dialog.getByRole('button', { name: 'Start' }).click();
  await expect(lab.dialog.getByRole('alert')).toHaveText('Enter 1 or more.');
  await expect(lab.workers).toBeFocused();
});

test('a stop that nobody confirms can be forced, in plain words', async () => {
  answers.set('DELETE clusters/abc123', {}, 202);
  await show(
    cluster({
      phase: 'stopping',
      phase_since: Date.now() / 1000 - 300,
      words: 'stopping: 1 job still ending'
    })
  );
  await lab.button('Stop by force: quiet-fox').click();
  await expect(lab.dialog).toContainText('has not confirmed its end.');
  await lab.screenshot('stop-by-force');
  const forced = page.waitForRequest(
    request =>
      request.method() === 'DELETE' &&
      new URL(request.url()).searchParams.get('force') === '1'
  );
  await lab.dialog.getByRole('button', { name: 'Stop by force' }).click();
  await forced;
});

test('a cluster that somebody else started is only looked at', async () => {
  await show(
    cluster({
      backend: 'existing',
      title: 'Group scheduler',
      words: 'answers; it was not started here',
      target: { minimum: 0, maximum: 0 },
      workers: { asked: 0, pending: 0, starting: 0, ready: 0, lost: 0 },
      memory_limit: 0,
      memory_used: 0
    })
  );
  const buttons = lab
    .card('quiet-fox')
    .locator('.jp-gpucluster-Buttons')
    .getByRole('button');
  await expect(buttons).toHaveText(['Dashboard', 'Connect', 'Detach', 'More']);
  await lab.button('Detach quiet-fox').click();
  await expect(lab.dialog).toContainText('It is only taken off this list.');
  await lab.screenshot('detach');
});

test('details tell jobs and timeline', async () => {
  await page.setViewportSize({ width: 1280, height: 1100 });
  answers.set('GET clusters/abc123/events', { events: timeline });
  answers.set('GET clusters/abc123/jobs', {
    jobs: [
      job({ task: 1 }),
      job({
        id: '48212',
        state: 'out_of_memory',
        exit_code: 137,
        cause: 'It used more than 16 GiB.'
      }),
      job({ id: '48240', state: 'pending', nodes: [], submitted: 1e10 })
    ]
  });
  await show(cluster());
  const card = lab.card('quiet-fox');
  await card.getByText('Details').click();
  await expect(card.getByRole('row')).toHaveCount(4);
  await expect(card.getByRole('row').nth(1)).toContainText('48240');
  await expect(
    card
      .getByRole('list', { name: /^Timeline/ })
      .locator('li')
      .first()
  ).toContainText('Requested 1 worker');
  await card.getByText('Timeline').scrollIntoViewIfNeeded();
  await lab.screenshot('timeline');
});

test('plots open as one layout, and follow the cluster that is worked with', async () => {
  await show(
    cluster(),
    cluster({ id: 'second', name: 'other-lynx' }),
    ...everyPhase.slice(6, 7)
  );
  await lab.run('gpucluster:open-layout', { cluster: 'abc123' });
  const frames = page.locator('.jp-gpucluster-Dashboard iframe');
  await expect(frames).toHaveCount(3);
  for (const frame of await frames.all()) {
    await expect(frame).toBeVisible();
  }
  for (const words of await page.getByText('Loading the dashboard…').all()) {
    await expect(words).toBeHidden();
  }
  await lab.run('gpucluster:follow-active');
  await lab.card('other-lynx').focus();
  for (const frame of await frames.all()) {
    await expect(frame).toHaveAttribute('src', /dashboard\/second\//);
  }
  await lab.run('gpucluster:follow-active');
});

test('a failed cluster leads back to the field that may be the reason', async () => {
  answers.set('GET clusters/abc123/jobs', {
    jobs: [job({ state: 'out_of_memory', exit_code: 137 })]
  });
  await show(
    cluster({
      phase: 'failed',
      name: 'broken-jay',
      ended: Date.now() / 1000,
      reason:
        'Its workers used more memory than they asked for.\nslurmstepd: error: Detected 1 oom_kill event',
      dashboard: null
    })
  );
  await lab
    .card('broken-jay')
    .getByRole('button', { name: /^Fix and retry/ })
    .click();
  const memory = lab.dialog.getByLabel('Memory per worker');
  await expect(memory).toBeFocused();
  await expect(lab.dialog.getByRole('alert')).toHaveText(
    'Its workers used more memory than they asked for.'
  );
  await expect(
    lab.dialog.getByLabel('Environment', { exact: true })
  ).toBeEnabled();
  await lab.screenshot('fix');
});

test('details have a tab, section by section', async () => {
  answers.set('GET clusters/abc123/events', { events: timeline });
  answers.set('GET clusters/abc123/jobs', {
    jobs: [
      job({
        state: 'out_of_memory',
        cause: 'It used more than 16 GiB.',
        nodes: ['gpu07.cluster.example.org']
      })
    ]
  });
  answers.set('GET clusters/abc123/logs', { text: 'worker 1 is ready\n' });
  answers.set('GET clusters/abc123/scripts', {
    scripts: [
      {
        mark: 'gpc-abc123-1',
        text: '#!/bin/sh\nexec dask worker\n',
        command: 'start --count 2',
        written: Date.now() / 1000
      }
    ]
  });
  await show(cluster());
  await lab.run('gpucluster:open-details', { cluster: 'abc123' });
  const details = page.getByRole('region', { name: 'Details of quiet-fox' });
  await expect(details.getByRole('row')).toHaveCount(2);
  await lab.screenshot('details-jobs');
  // Where there is no room for all columns, the table scrolls and not the page.
  await page.setViewportSize({ width: 820, height: 800 });
  for (const [selector, scrolls] of [
    ['.jp-gpucluster-Jobs', true],
    ['.jp-gpucluster-DetailsTab', false]
  ] as const) {
    await expect
      .poll(() =>
        page
          .locator(selector)
          .last()
          .evaluate(node => node.scrollWidth > node.clientWidth)
      )
      .toBe(scrolls);
  }
  await lab.screenshot('details-narrow');
  await details.getByRole('tab', { name: 'Jobs' }).focus();
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('ArrowRight');
  await expect(details.getByRole('tabpanel')).toContainText(
    'Scheduler started'
  );
  await details.getByRole('tab', { name: 'Script' }).click();
  await expect(
    details.getByRole('region', { name: 'Submit command of gpc-abc123-1' })
  ).toContainText('--count');
  await expect(details.getByRole('tabpanel')).toContainText('1 job (48211)');
  await lab.screenshot('details-script');
  await details.getByRole('tab', { name: 'Log' }).click();
  await expect(details.getByRole('tabpanel')).toContainText(
    'worker 1 is ready'
  );
  await lab.screenshot('details-log');
});

test('a log is searched, and grows while it is followed', async () => {
  answers.set('GET clusters/abc123/logs', {
    text: '==> head.log <==\nstarted\nworker 1 is ready\n'
  });
  await show(cluster());
  await lab.button('More for quiet-fox').click();
  await lab.page.getByRole('menuitem', { name: 'Show log' }).click();
  await expect(lab.dialog).toContainText('worker 1 is ready');
  answers.set('GET clusters/abc123/logs', {
    text: '==> head.log <==\nstarted\nworker 1 is ready\nworker 2 is ready\n'
  });
  await expect(lab.dialog).toContainText('worker 2 is ready');
  await lab.dialog.getByRole('searchbox').fill('WORKER');
  await lab.page.keyboard.press('Enter');
  await expect(lab.dialog).toContainText('2 of 5 lines');
  await expect(lab.dialog.locator('mark')).toHaveCount(2);
  await lab.screenshot('log-search');
});

test('a notice says that a cluster is ready, wherever the user is', async () => {
  const starting = cluster({
    phase: 'starting',
    words: '0 of 2 workers ready',
    workers: { asked: 2, pending: 0, starting: 2, ready: 0, lost: 0 },
    dashboard: null
  });
  answers.set('POST clusters', starting, 201);
  await show();
  await lab.openDialog();
  answers.clusters(starting);
  await lab.dialog.getByRole('button', { name: 'Start' }).click();
  await expect(lab.status).toHaveText('1 cluster, 0 of 2 workers');
  await page.getByRole('tab', { name: 'File Browser' }).click();
  answers.clusters(cluster());
  const notice = page.locator('.Toastify__toast');
  await expect(notice).toContainText('quiet-fox is ready');
  await expect(lab.status).toHaveText('1 cluster, 2 of 2 workers');
  await lab.screenshot('notice');
  await notice.getByText('Dashboard').click();
  await expect(lab.dashboard().getByText('plots')).toBeVisible();
  await lab.status.click();
  await page.getByRole('menuitem', { name: /^quiet-fox: Running/ }).click();
  await expect(lab.card('quiet-fox')).toBeFocused();
});

test('the browser itself calls whoever asked for it', async () => {
  await page.context().grantPermissions(['notifications']);
  await page.evaluate(() => {
    const calls: string[] = [];
    const Given = window.Notification;
    class Noted extends Given {
      constructor(title: string, options?: NotificationOptions) {
        super(title, options);
        calls.push(title);
      }
    }
    Object.assign(window, { Notification: Noted, calls });
  });
  await show(
    cluster({
      phase: 'pending',
      words: '0 of 2 workers ready, 2 waiting',
      workers: { asked: 2, pending: 2, starting: 0, ready: 0, lost: 0 },
      dashboard: null
    })
  );
  const bell = lab.button('Tell me when it is ready: quiet-fox');
  await bell.click();
  await expect(bell).toHaveAttribute('aria-pressed', 'true');
  await tell(cluster());
  await expect
    .poll(() =>
      page.evaluate(() => (window as unknown as { calls: string[] }).calls)
    )
    .toEqual(['quiet-fox is ready with 2 of 2 workers.']);
});

test('the panel of everything that runs lists clusters, and asks in our words', async () => {
  answers.set('DELETE clusters/abc123', {}, 202);
  answers.set('DELETE clusters/p', {}, 202);
  await show(cluster(), ...everyPhase.slice(0, 1));
  await page
    .getByRole('tab', { name: 'Running Terminals and Kernels' })
    .click();
  const section = page.locator('#jp-running-sessions');
  await expect(section.getByText('quiet-fox')).toBeVisible();
  await section.getByText('quiet-fox').hover();
  await lab.screenshot('running');
  const stopped = page.waitForRequest(
    request =>
      request.method() === 'DELETE' &&
      new URL(request.url()).pathname.endsWith('/clusters/p')
  );
  await section.getByText('Stop all clusters').click();
  await expect(lab.dialog).toContainText(
    // JupyterLab 4.2 asks for the words once, before there is a cluster.
    /This ends (quiet-fox, patient-owl|all clusters started here)\./
  );
  await lab.screenshot('running-stop-all');
  await lab.dialog.getByText('Stop all clusters').last().click();
  await stopped;
});

test('history starts a cluster again, and tells how to elsewhere', async () => {
  await show(
    cluster(),
    ...Array.from({ length: 9 }, (_, index) =>
      cluster({
        id: `h${index}`,
        name: `old-${index}`,
        phase: index === 1 ? 'failed' : 'stopped',
        reason:
          index === 1
            ? 'Its scheduler is gone: it was killed, or the machine was restarted.'
            : 'Stopped by you.',
        ended: Date.now() / 1000 - 3600 * (index + 1),
        target: { minimum: 1, maximum: 3 },
        options: { threads: 1 },
        dashboard: null
      })
    )
  );
  await expect(
    lab.panel.getByRole('heading', { name: 'History' })
  ).toBeVisible();
  await expect(lab.button('old-7')).toBeVisible();
  await expect(lab.button('old-8')).toBeHidden();
  await lab.button('Show all 9').click();
  await expect(lab.button('old-8')).toBeVisible();
  await lab.button('old-0').click();
  await lab.button('More for old-0').click();
  await lab.screenshot('history');
  await page.getByRole('menuitem', { name: 'Copy as command' }).click();
  const copied = (text: string): Promise<void> =>
    expect
      .poll(() => page.evaluate(() => navigator.clipboard.readText()))
      .toContain(text);
  await copied('jupyter gpucluster start local --adapt 1 3 --option threads=1');
  for (const [item, text] of [
    ['Copy as Python', 'GPUCluster('],
    ['Copy as profile', '"threads": {default: 1}']
  ]) {
    await lab.button('More for old-0').click();
    await page.getByRole('menuitem', { name: item }).click();
    await copied(text);
  }
  await lab
    .card('old-0')
    .getByRole('button', { name: /^Start again/ })
    .click();
  await expect(lab.dialog.getByLabel('Maximum')).toHaveValue('3');
  await expect(lab.dialog.getByLabel('Name')).toHaveValue('old-0');
  await lab.dialog.getByText('Job script and submit command').click();
  await expect(
    lab.dialog.getByRole('region', { name: 'Submit command' })
  ).toContainText('--count');
  await lab.dialog
    .getByText('Job script', { exact: true })
    .scrollIntoViewIfNeeded();
  await lab.screenshot('script');
});

test('many clusters are scrolled, stay in place when they change, and fold away', async () => {
  const many = (revision: number): object[] =>
    Array.from({ length: 50 }, (_, index) =>
      cluster({ id: `m${index}`, name: `fox-${index}`, revision, threads: 0 })
    );
  await show(...many(1));
  await lab.card('fox-49').scrollIntoViewIfNeeded();
  await tell(
    ...many(2).map(item => ({ ...item, words: '1 of 2 workers ready' }))
  );
  await expect(lab.card('fox-49')).toContainText('1 of 2 workers ready');
  await expect(lab.card('fox-49')).toBeInViewport();
  const title = lab.panel.getByText('Clusters', { exact: true });
  await title.click();
  await expect(lab.card('fox-49')).not.toBeInViewport();
  await title.click();
  await expect(lab.card('fox-49')).toBeInViewport();
});

test('the keyboard reaches everything', async () => {
  await show(cluster());
  await page.getByRole('tab', { name: 'File Browser' }).click();
  await page.keyboard.press('Control+Shift+C');
  await page.keyboard.type('Show GPU clusters');
  await page.keyboard.press('Enter');
  await expect(lab.panel).toBeFocused();
  // Past the toolbar and the section's title.
  await expect(async () => {
    await page.keyboard.press('Tab');
    await expect(lab.button('Dashboard of quiet-fox')).toBeFocused({
      timeout: 100
    });
  }).toPass();
  for (const name of ['Connect', 'Scale', 'Stop', 'More']) {
    await page.keyboard.press('Tab');
    await expect(page.locator(':focus')).toHaveText(name);
  }
  await page.keyboard.press('Enter');
  await expect(page.getByRole('menu')).toBeVisible();
  await lab.screenshot('more-menu');
  await page.keyboard.press('Escape');
  await expect(page.locator(':focus')).toHaveText('More');
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await expect(lab.card('quiet-fox')).toContainText('tls://127.0.0.1:40123');
});

test('a normal stop is not red', async () => {
  await show(
    cluster({
      phase: 'stopping',
      words: 'stopping: 3 jobs still ending',
      workers: {
        asked: 3,
        pending: 0,
        starting: 0,
        ready: 0,
        lost: 0,
        ending: 3
      }
    })
  );
  const card = lab.card('quiet-fox');
  await expect(card.getByRole('list', { name: 'Workers' })).toHaveText(
    '3 ending'
  );
  const colour = (selector: string): Promise<string> =>
    card
      .locator(selector)
      .first()
      .evaluate(node => getComputedStyle(node).backgroundColor);
  const red = await page.evaluate(() => {
    const probe = document.body.appendChild(document.createElement('div'));
    probe.style.background = 'var(--jp-error-color1)';
    const found = getComputedStyle(probe).backgroundColor;
    probe.remove();
    return found;
  });
  expect(await colour('.jp-gpucluster-Bar-part')).not.toBe(red);
  await lab.screenshot('stopping');
});

test('no name of a fact takes the room of its value', async () => {
  const clock = (name: string, job: string): object => ({
    name,
    seconds: 3600,
    ends: Date.now() / 1000 + 2400,
    job,
    follows: job === '' ? null : true
  });
  await show(
    cluster({
      clocks: [
        clock('end of job gpc-abc123-1_0, a new one follows', 'gpc-abc123-1_0'),
        clock('end of Slurm job 123456789 of the whole research group', '')
      ]
    })
  );
  const card = lab.card('quiet-fox');
  await card.getByText('Details').click();
  for (const width of [300, 220]) {
    await page.addStyleTag({
      content: `.jp-gpucluster-Section { max-width: ${width}px !important; }`
    });
    expect(await lab.narrowestFact(card)).toBeGreaterThan(0.4);
    await card.getByText('Details').scrollIntoViewIfNeeded();
    await lab.screenshot(`facts-${width}`);
  }
  await expect(card).toContainText('(a new one follows), 39 min left');
});

test('details list the workers, the worst first, to restart and to give back', async () => {
  await page.setViewportSize({ width: 1280, height: 900 });
  const worker = {
    name: 'gpc-abc123-1_0',
    job: 'gpc-abc123-1_0',
    host: 'gpu01',
    status: 'running',
    memory_used: 3e9,
    memory_limit: 8e9,
    tasks: 12,
    silent: 0.4,
    can_be_dropped: true,
    per_job: 1
  };
  answers.set('GET clusters/abc123/workers', {
    workers: [
      worker,
      {
        ...worker,
        name: 'gpc-abc123-1_1',
        job: 'gpc-abc123-1_1',
        host: 'gpu02',
        silent: 64
      }
    ]
  });
  await show(cluster());
  await lab.run('gpucluster:open-details', {
    cluster: 'abc123',
    section: 'workers'
  });
  const details = page.locator('.jp-gpucluster-Page');
  await expect(details.getByRole('row').nth(1)).toContainText('1 min ago');
  await lab.screenshot('workers');
  answers.set('PATCH clusters/abc123', cluster());
  await details
    .getByRole('button', { name: 'Give back gpc-abc123-1_1' })
    .click();
  await expect(lab.dialog).toContainText('The cluster keeps 1 worker.');
  const sent = page.waitForRequest(request => request.method() === 'PATCH');
  await lab.dialog.getByRole('button', { name: 'Give back' }).click();
  expect((await sent).postDataJSON()).toEqual({ drop: 'gpc-abc123-1_1' });
});

for (const [size, viewport] of [
  ['200 % zoom', { width: 640, height: 950 }],
  ['220 pixels', { width: 1280, height: 1900 }]
] as const) {
  test(`at ${size} each button can be pressed, and says why it cannot be used`, async () => {
    await page.setViewportSize(viewport);
    await show(...everyPhase);
    if (size === '220 pixels') {
      await page.addStyleTag({
        content: '.jp-gpucluster-Section { max-width: 220px !important; }'
      });
    }
    const cut = await lab.panel.evaluate(panel =>
      [...panel.querySelectorAll('.jp-gpucluster-Section')].flatMap(section => {
        const right = section.getBoundingClientRect().right;
        return [...section.querySelectorAll('button, p, h3, li, select')]
          .filter(part => part.getBoundingClientRect().right > right + 1)
          .map(part => part.textContent);
      })
    );
    expect(cut).toEqual([]);
    await lab.screenshot(`buttons-${viewport.width}`);
    const card = lab.card('leaving-swift');
    // It is no `disabled` button, though Playwright takes it for one.
    await lab.button('Scale leaving-swift').click({ force: true });
    await expect(card).toContainText('It is stopping.');
    await card.scrollIntoViewIfNeeded();
    await lab.screenshot(`why-${viewport.width}`);
  });
}

// Last, for Lab remembers the theme.
test('a narrow panel in a dark theme shows everything', async () => {
  await page.setViewportSize({ width: 900, height: 1300 });
  const title = `${'Largest'.repeat(12)} <img src=x onerror="document.title='hit'">`;
  await page.route('**/gpucluster/api/profiles*', async route => {
    const answer = await route.fetch();
    const told = (await answer.json()) as { profiles: object[] };
    const [first] = told.profiles;
    told.profiles.push({ ...first, name: 'open', title, encrypted: false });
    await route.fulfill({ response: answer, json: told });
  });
  await show(...everyPhase.slice(0, 4));
  const profile = lab.panel.getByRole('listitem').filter({ hasText: title });
  await expect(profile).toContainText('not encrypted');
  await lab.setTheme('JupyterLab Dark');
  await lab.narrow();
  await lab.card('early-lark').getByText('Details').click();
  await lab
    .card('early-lark')
    .getByRole('button', { name: /^Scale/ })
    .click();
  const overflowing = await lab.panel.evaluate(
    panel =>
      [...panel.querySelectorAll('.jp-gpucluster-Section')].filter(
        section => section.scrollWidth > section.clientWidth
      ).length
  );
  expect(overflowing).toBe(0);
  await expect(page).not.toHaveTitle('hit');
  await lab.screenshot('narrow-dark');
  await lab.setTheme('JupyterLab Dark High Contrast');
  await lab.screenshot('narrow-high-contrast');
  answers.set('GET clusters/s/events', { events: timeline });
  answers.set('GET clusters/s/jobs', {
    jobs: [job(), job({ id: '48212', task: 1, group: 'cpu' })]
  });
  await lab.run('gpucluster:open-details', { cluster: 's' });
  await expect(page.locator('.jp-gpucluster-Page')).toContainText('cpu');
  await lab.screenshot('details-high-contrast');
  await lab.openDialog();
  await lab.workers.fill('0');
  await lab.dialog.getByRole('button', { name: 'Start' }).click();
  await expect(lab.dialog.getByRole('alert')).toBeVisible();
  await expect(
    lab.dialog.locator('label').filter({ hasText: title })
  ).toContainText('not encrypted');
  await lab.screenshot('dialog-high-contrast');
  await lab.dialog.getByRole('button', { name: 'Cancel' }).click();
  await lab.button('Stop early-lark').click();
  await lab.screenshot('stop-high-contrast');
});
