/** What a user sees of Lab and of the panel, by the words on it. */

import { join } from 'node:path';

import type { FrameLocator, Locator, Page } from '@playwright/test';
import { expect } from '@playwright/test';
import axe from 'axe-core';

import { theSite } from '../site';

export class Lab {
  readonly panel: Locator;
  readonly dialog: Locator;
  readonly status: Locator;
  /** How many workers the dialog asks for. */
  readonly workers: Locator;

  constructor(readonly page: Page) {
    this.panel = page.locator('#jupyter-gpucluster-panel');
    this.dialog = page.getByRole('dialog');
    this.status = page.locator('.jp-gpucluster-Status');
    this.workers = this.dialog.getByRole('spinbutton', { name: 'Workers' });
  }

  /** Open Lab as it comes up the first time, with the panel shown. */
  async open(): Promise<void> {
    const { token } = theSite();
    await this.page.goto(`lab?reset&token=${token}`);
    // The launcher is the last to come, and takes the focus.
    await this.page.locator('.jp-LauncherCard').first().waitFor();
    await this.openPanel();
  }

  /** Put away what earlier tests have opened. */
  async tidy(): Promise<void> {
    if ((await this.dialog.count()) > 0) {
      await this.page.keyboard.press('Escape');
      await expect(this.dialog).toHaveCount(0);
    }
    await this.run('application:close-all');
    await this.run('gpucluster:show-panel');
    await this.run('gpucluster:refresh');
  }

  async openPanel(): Promise<void> {
    await this.page
      .locator('#jupyterlab-splash')
      .waitFor({ state: 'detached' });
    if (!(await this.panel.isVisible())) {
      await this.page.getByRole('tab', { name: 'GPU clusters' }).click();
    }
    await expect(this.panel).toBeVisible();
  }

  async openDialog(): Promise<void> {
    await this.button('New GPU cluster…').first().click();
    await expect(
      this.dialog.getByLabel('Environment', { exact: true })
    ).toBeEnabled();
  }

  /** Start two workers on this machine. */
  async start(): Promise<void> {
    await this.openDialog();
    await this.workers.fill('2');
    await this.dialog.getByRole('button', { name: 'Start' }).click();
    await expect(this.dialog).toBeHidden();
  }

  /** Run a command of Lab. */
  async run(command: string, args: object = {}): Promise<void> {
    await this.page.evaluate(
      async ([id, given]) => {
        const { jupyterapp } = window as unknown as {
          jupyterapp: {
            commands: { execute: (id: string, args: object) => Promise<void> };
          };
        };
        await jupyterapp.commands.execute(id, given);
      },
      [command, args] as const
    );
  }

  async setTheme(theme: string): Promise<void> {
    await this.run('apputils:change-theme', { theme });
    await expect(
      this.page.locator(`body[data-jp-theme-name="${theme}"]`)
    ).toBeAttached();
  }

  card(name: string): Locator {
    return this.panel.getByRole('article', { name });
  }

  button(name: string): Locator {
    return this.panel.getByRole('button', { name });
  }

  /** Leave the panel's content 240 pixels; Lab 4.6 itself stops at 250. */
  async narrow(): Promise<void> {
    await this.page.addStyleTag({
      content: '.jp-gpucluster-Section { max-width: 240px !important; }'
    });
  }

  /** The part of the width that the values of a card's facts have at least. */
  narrowestFact(card: Locator): Promise<number> {
    return card.locator('.jp-gpucluster-Facts').evaluate(list => {
      const whole = list.getBoundingClientRect().width;
      const widths = [...list.querySelectorAll('dd')].map(
        value => value.getBoundingClientRect().width
      );
      return Math.min(...widths) / whole;
    });
  }

  /** The page in the dashboard tab of a cluster. */
  dashboard(): FrameLocator {
    return this.page.frameLocator('.jp-gpucluster-Dashboard iframe');
  }

  /** Hold whatever is ours and can be seen to the rules for accessible pages. */
  async expectAccessible(): Promise<void> {
    if (!(await this.page.evaluate(() => 'axe' in window))) {
      await this.page.evaluate(axe.source);
    }
    // Lab's body is 0 pixels high and hides what overflows: the scan would take most of it for hidden.
    await this.page.addStyleTag({ content: 'body { min-height: 100vh; }' });
    const found = await this.page.evaluate(async () => {
      const { axe: scanner } = window as unknown as { axe: typeof axe };
      const ours = [
        '#jupyter-gpucluster-panel',
        '.jp-Dialog-content',
        '.jp-gpucluster-Placeholder',
        '.jp-gpucluster-Dashboard',
        '.jp-gpucluster-Page',
        '.jp-gpucluster-Output',
        '.jp-gpucluster-Status'
      ].filter(selector =>
        [...document.querySelectorAll(selector)].some(
          node => node.getClientRects().length > 0
        )
      );
      const results = await scanner.run(ours, {
        runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice'],
        // Lab is one page, whose landmarks and first heading are not ours; its menus need no region.
        rules: {
          'landmark-one-main': { enabled: false },
          'page-has-heading-one': { enabled: false },
          region: { enabled: false }
        }
      });
      return results.violations.flatMap(({ id, nodes }) =>
        nodes.map(node => `${id}: ${node.html} ${node.failureSummary}`)
      );
    });
    expect(found).toEqual([]);
  }

  /** Take a picture of a state, which must be accessible too. */
  async screenshot(name: string): Promise<void> {
    await this.expectAccessible();
    await this.page.screenshot({
      path: join(import.meta.dirname, '..', 'screenshots', `${name}.png`)
    });
  }
}
