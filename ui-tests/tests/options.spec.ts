/** The options of a profile in the dialog, also in a page that forbids making code of text. */

import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import type { Locator, Page } from '@playwright/test';
import { expect, test } from '@playwright/test';

import { theSite } from '../site';
import { Answers, cluster } from './answers';
import { Lab } from './lab';

const PROFILE = `
title: Every kind of option
backend: local
options:
  project:
    type: string
    title: Project
    help: Where the hours are booked.
    required: true
    pattern: "[a-z][0-9]{3,5}"
    field: environment.variables.PROJECT
  card:
    type: enum
    title: Card
    required: true
    choices: [a100, h100]
    field: environment.variables.CARD
  threads: {type: integer, title: Threads per worker, minimum: 1, maximum: 2, field: workers.threads}
  memory: {type: memory, title: Memory per worker, field: workers.memory_limit}
  lifetime:
    {type: duration, title: Longest life, maximum: 2 h, default: 1 h, field: policy.max_lifetime}
  queue: {type: enum, title: Queue, choices: [short, long], field: environment.variables.QUEUE}
  exclusive:
    type: boolean
    title: Whole nodes
    help: Nobody else computes there.
    field: environment.variables.EXCLUSIVE
  scratch: {type: path, title: Scratch, field: environment.variables.SCRATCH}
`;
const FORBIDDING = "script-src 'self' 'unsafe-inline'";

let page: Page;
let lab: Lab;
let answers: Answers;

interface IWatched {
  violations: string[];
}

test.beforeAll(async ({ browser }) => {
  const folder = join(theSite().root, 'data/gpucluster/profiles');
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'every-kind.yaml'), PROFILE);
  page = await browser.newPage();
  lab = new Lab(page);
  answers = new Answers();
  await answers.install(page);
  await page.addInitScript(() => {
    const watched = window as unknown as IWatched;
    watched.violations = [];
    document.addEventListener('securitypolicyviolation', event => {
      watched.violations.push(
        `${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}`
      );
    });
  });
  // Lab checks its own settings by code made of text, so while it loads this can only be watched.
  await page.route(/\/lab\?/, async route => {
    const response = await route.fetch();
    await route.fulfill({
      response,
      headers: {
        ...response.headers(),
        'content-security-policy-report-only': FORBIDDING
      }
    });
  });
  answers.clusters();
  await lab.open();
});

test.afterAll(async () => {
  await page.close();
  rmSync(join(theSite().root, 'data/gpucluster/profiles/every-kind.yaml'));
});

test.beforeEach(async () => {
  await page.setViewportSize({ width: 1280, height: 1000 });
  answers.clear();
  answers.clusters();
  await lab.tidy();
});

function field(label: string): Locator {
  return lab.dialog.getByLabel(label, { exact: true });
}

/** What is said to be wrong with a field, as a screen reader finds it. */
async function expectError(label: string, text: string): Promise<void> {
  await expect(field(label)).toHaveAttribute('aria-invalid', 'true');
  await expect(field(label)).toHaveAccessibleDescription(
    new RegExp(`${text}$`)
  );
}

async function openEveryKind(): Promise<void> {
  await lab.openDialog();
  await lab.dialog.getByRole('radio', { name: /^Every kind/ }).check();
  await expect(field('Project (required)')).toBeVisible();
}

function violations(): Promise<string[]> {
  return page.evaluate(() => (window as unknown as IWatched).violations);
}

test('every kind of option tells what is wrong with it', async () => {
  await openEveryKind();
  await lab.dialog.getByText('More options').click();
  await expect(field('Longest life')).toHaveValue('01:00:00');
  await expect(field('Queue').getByRole('option')).toHaveText([
    'Default',
    'short',
    'long'
  ]);
  await expect(field('Whole nodes')).toHaveAccessibleDescription(
    'Nobody else computes there.'
  );
  await expect(field('Scratch')).toHaveAttribute('placeholder', /^a path that/);
  await lab.screenshot('options');

  await lab.dialog.getByRole('button', { name: 'Start' }).click();
  await expectError('Project (required)', 'Required.');
  await expectError('Card (required)', 'Required.');
  await expect(field('Project (required)')).toBeFocused();
  await lab.screenshot('options-needed');

  await field('Project (required)').fill('m12');
  await expectError('Project (required)', 'Give one line of text that .*');
  await field('Card (required)').selectOption('a100');
  await field('Threads per worker').fill('3');
  await expectError(
    'Threads per worker',
    'Give a whole number, at least 1, at most 2.'
  );
  await field('Memory per worker').fill('lots');
  await expectError(
    'Memory per worker',
    'Give an amount of memory such as 4 GiB.'
  );
  await field('Scratch').fill('here');
  await expectError('Scratch', 'Give a path that .*');
  await lab.screenshot('options-wrong');

  // What only the server can tell.
  await field('Project (required)').fill('m1234');
  await field('Threads per worker').fill('2');
  await field('Memory per worker').fill('1 GiB');
  await field('Scratch').fill('/scratch');
  await field('Longest life').fill('3 h');
  await expectError('Longest life', 'is more than 02:00:00.*');
  await field('Longest life').fill('');
  await expect(field('Longest life')).not.toHaveAttribute(
    'aria-invalid',
    'true'
  );
  await field('Queue').selectOption('long');
  await field('Whole nodes').check();
  answers.set(
    'POST clusters',
    { message: 'No such folder.', hint: 'Make it.', detail: 'options.scratch' },
    422
  );
  await lab.dialog.getByText('More options').click();
  await expect(field('Scratch')).toBeHidden();
  const sent = page.waitForRequest(
    request =>
      request.method() === 'POST' &&
      new URL(request.url()).pathname.endsWith('/api/clusters')
  );
  await lab.dialog.getByRole('button', { name: 'Start' }).click();
  expect((await sent).postDataJSON()).toMatchObject({
    profile: 'every-kind',
    options: {
      project: 'm1234',
      card: 'a100',
      threads: 2,
      memory: '1 GiB',
      queue: 'long',
      exclusive: true,
      scratch: '/scratch'
    }
  });
  await expectError('Scratch', 'No such folder. Make it.');
  await expect(field('Scratch')).toBeFocused();
  await lab.screenshot('options-refused');
});

test('options begin with what was chosen the last time', async () => {
  answers.clusters(
    cluster({
      profile: 'every-kind',
      phase: 'stopped',
      options: { project: 'm777', card: 'h100', threads: 1, exclusive: true }
    })
  );
  await lab.run('gpucluster:refresh');
  await openEveryKind();
  await lab.dialog.getByText('More options').click();
  await expect(field('Project (required)')).toHaveValue('m777');
  await expect(field('Card (required)')).toHaveValue('h100');
  await expect(field('Threads per worker')).toHaveValue('1');
  await expect(field('Whole nodes')).toBeChecked();
});

test('Notebook 7 draws the options, too', async ({ page: notebook }) => {
  await notebook.goto(`tree?token=${theSite().token}`);
  await notebook.getByRole('menuitem', { name: 'View' }).click();
  await notebook
    .locator('#jp-mainmenu-view')
    .getByText('Show GPU clusters', { exact: true })
    .first()
    .click();
  const there = new Lab(notebook);
  await there.openDialog();
  await there.dialog.getByRole('radio', { name: /^Every kind/ }).check();
  await there.dialog.getByLabel('Project (required)').fill('m12');
  await expect(there.dialog.getByRole('alert')).toContainText(
    'Give one line of text'
  );
  await there.screenshot('options-notebook7');
});

// Last, for Lab remembers the theme.
for (const theme of ['JupyterLab Dark', 'JupyterLab Dark High Contrast']) {
  test(`options can be read in ${theme}, in a narrow page`, async () => {
    await lab.setTheme(theme);
    await openEveryKind();
    await page.setViewportSize({ width: 420, height: 1100 });
    await field('Project (required)').fill('m12');
    await lab.dialog.getByText('More options').click();
    await field('Threads per worker').fill('3');
    await expectError('Threads per worker', 'at most 2.');
    const content = lab.dialog.locator('.jp-Dialog-content');
    expect(
      await content.evaluate(node => node.scrollWidth - node.clientWidth)
    ).toBe(0);
    await lab.screenshot(`options-${theme.toLowerCase().replace(/ /g, '-')}`);
  });
}

test('a page that forbids code made of text leaves the check to the server', async () => {
  expect(
    (await violations()).filter(text => text.includes('gpucluster'))
  ).toEqual([]);
  // From here on the page forbids it for good.
  await page.evaluate(policy => {
    const meta = document.createElement('meta');
    meta.httpEquiv = 'Content-Security-Policy';
    meta.content = policy;
    document.head.append(meta);
  }, FORBIDDING);
  const forbidden = await page.evaluate(
    () =>
      new Promise<string>(resolve => {
        window.setTimeout(() => {
          try {
            // eslint-disable-next-line @typescript-eslint/no-implied-eval -- this is what must fail
            resolve(String(new Function('return 1')()));
          } catch (error) {
            resolve((error as Error).name);
          }
        });
      })
  );
  expect(forbidden).toBe('EvalError');
  expect((await violations()).at(-1)).toContain('eval');

  await openEveryKind();
  await field('Project (required)').fill('m12');
  await field('Card (required)').selectOption('a100');
  await expect(field('Project (required)')).toHaveAttribute(
    'aria-invalid',
    'true'
  );
  await lab.screenshot('options-forbidding');
  await field('Project (required)').fill('m1234');
  await expect(field('Project (required)')).not.toHaveAttribute(
    'aria-invalid',
    'true'
  );
});
