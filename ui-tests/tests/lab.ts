/** What a user sees of Lab and of the panel, by the words on it. */

import { join } from 'node:path';

import type { FrameLocator, Locator, Page } from '@playwright/test';
import { expect } from '@playwright/test';

import { theSite } from '../site';

export class Lab {
  readonly panel: Locator;
  readonly dialog: Locator;
  /** How many workers the dialog asks for. */
  readonly workers: Locator;

  constructor(readonly page: Page) {
    this.panel = page.locator('#jupyter-gpucluster-panel');
    this.dialog = page.getByRole('dialog');
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
    await expect(this.dialog.getByLabel('Environment')).toBeEnabled();
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

  /** The page in the dashboard tab of a cluster. */
  dashboard(): FrameLocator {
    return this.page.frameLocator('.jp-gpucluster-Dashboard iframe');
  }

  async screenshot(name: string): Promise<void> {
    await this.page.screenshot({
      path: join(import.meta.dirname, '..', 'screenshots', `${name}.png`)
    });
  }
}
