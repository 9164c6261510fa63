/** The buttons of a notice. */

import type { Notification } from '@jupyterlab/apputils';
import type { CommandRegistry } from '@lumino/commands';

/** A button that runs a command for a cluster. */
export function actionFor(
  commands: CommandRegistry,
  cluster: string,
  label: string,
  command: string
): Notification.IAction {
  return {
    label,
    callback: () => {
      void commands.execute(command, { cluster });
    }
  };
}
