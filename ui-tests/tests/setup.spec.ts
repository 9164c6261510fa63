/** A batch system without a profile is set up in Lab, beside the recorded answers of a Slurm. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { expect, test } from '@playwright/test';

import { Lab } from './lab';

test.describe.configure({ timeout: 240_000 });

let address: string;
let home: string;
let end: () => Promise<void>;

/** Start a Lab beside a recorded Slurm, or in one of its jobs. */
async function start(...words: string[]): Promise<void> {
  const server = spawn('python', ['-m', 'tests.setup.lab', ...words], {
    cwd: join(import.meta.dirname, '..', '..')
  });
  const ended = once(server, 'exit');
  server.stderr.pipe(process.stderr);
  const [said] = await Promise.race([once(server.stdout, 'data'), ended]);
  [address, home] = String(said).trim().split(' ');
  end = async () => {
    server.stdin.end();
    expect(await ended).toEqual([0, null]);
  };
}

test.beforeAll(() => start());

test.afterAll(() => end());

test('one dialog leads from a found Slurm to the start of a cluster', async ({
  page
}) => {
  await page.setViewportSize({ width: 1280, height: 1000 });
  const lab = new Lab(page);
  await page.goto(address);
  await page.locator('.jp-LauncherCard').first().waitFor();
  await lab.openPanel();
  await expect(lab.panel).toContainText('Slurm found, without a profile.');
  await lab.screenshot('setup-found');
  expect(readdirSync(home).filter(name => name.endsWith('.calls'))).toEqual([]);

  await lab.button('Set up…').click();
  const queue = lab.dialog.getByRole('radio', { name: /^gpu: 4 GPUs/ });
  await expect(queue).toBeVisible();
  await expect(lab.dialog).toContainText('3 GPUs free now. 2 nodes.');
  await expect(
    lab.dialog.getByRole('radio', { name: /^closed/ })
  ).toBeDisabled();
  await lab.screenshot('setup-queues');
  await queue.check();
  const profile = lab.dialog.getByRole('region', { name: 'Profile slurm-gpu' });
  await expect(profile).toContainText('queue: "gpu"');
  await expect(profile).toContainText('required: true');

  const save = lab.dialog.getByRole('button', { name: 'Save and start…' });
  const account = lab.dialog.getByLabel('Account', { exact: true });
  await save.click();
  await expect(account).toBeFocused();
  await expect(account).toHaveAttribute('aria-invalid', 'true');
  await lab.screenshot('setup-account');
  await account.selectOption('lab1');
  await expect(profile).toContainText('default: "lab1"');
  await lab.dialog.getByRole('button', { name: 'Test' }).click();
  await expect(lab.dialog).toContainText('Slurm would accept the job');
  await lab.screenshot('setup-tested');
  const file = join(home, 'data/gpucluster/profiles/slurm-gpu.yaml');
  expect(existsSync(file)).toBe(false);

  await save.click();
  await expect(lab.dialog).toContainText('New GPU cluster');
  await expect(
    lab.dialog.getByRole('radio', { name: /^Slurm: gpu/ })
  ).toBeChecked();
  expect(readFileSync(file, 'utf-8')).toContain('default: "lab1"');
  await lab.screenshot('setup-start');
  await page.keyboard.press('Escape');
  await expect(lab.panel).not.toContainText('without a profile');
});

for (const theme of ['JupyterLab Dark', 'JupyterLab Dark High Contrast']) {
  test(`the dialog can be read in ${theme}, in a narrow page`, async ({
    page
  }) => {
    const lab = new Lab(page);
    await page.goto(address);
    await page.locator('.jp-LauncherCard').first().waitFor();
    await lab.setTheme(theme);
    await page.setViewportSize({ width: 420, height: 1000 });
    const closed = lab.run('gpucluster:set-up');
    await expect(
      lab.dialog.getByRole('radio', { name: /^closed/ })
    ).toBeDisabled();
    await lab.dialog.getByRole('radio', { name: /^long/ }).check();
    await expect(
      lab.dialog.getByRole('region', { name: /^Profile/ })
    ).toContainText('queue: "long"');
    const content = lab.dialog.locator('.jp-Dialog-content');
    expect(
      await content.evaluate(node => node.scrollWidth - node.clientWidth)
    ).toBe(0);
    await lab.screenshot(`setup-${theme.toLowerCase().replace(/ /g, '-')}`);
    await page.keyboard.press('Escape');
    await closed;
  });
}

test('in a batch job the dialog leads with the GPUs of this job', async ({
  page
}) => {
  await end();
  await start('inside');
  const lab = new Lab(page);
  await page.goto(address);
  await page.locator('.jp-LauncherCard').first().waitFor();
  await lab.openPanel();
  await lab.openDialog();
  const [first, second] = await lab.dialog
    .locator('.jp-gpucluster-Choice')
    .getByRole('group')
    .all();
  await expect(first).toHaveAccessibleName(
    /^Use this job's GPUs: 4 GPUs, until .*, no waiting$/
  );
  await expect(first.getByRole('radio')).toBeChecked();
  await expect(second).toHaveAccessibleName(
    'New jobs: queued, charged in addition'
  );
  const other = second.getByRole('radio', { name: /^Other site/ });
  await expect(other).toBeDisabled();
  await expect(second).toContainText('does not have the command qsub');
  await lab.screenshot('inside-job');
  await second.getByRole('radio', { name: /^Queue gpu/ }).check();
  await expect(lab.dialog).toContainText('You get 4 GPUs');
});
