/** Everything that can be done, as commands; palette, launcher, menus and cards only name them. */

import { addBenchmarkCommands } from './benchmark';
import { CommandIDs } from '../model/commandIds';
import { addLifeCommands } from './life';
import { addPanelCommands } from './panel';
import type { ICommandOptions } from './register';
import { addTabCommands } from './tabs';
import { addUseCommands } from './use';

/** Add the commands, and tell the registry whenever what they may do has changed. */
export function addCommands(options: ICommandOptions): void {
  const { app, model } = options;
  addPanelCommands(options);
  addUseCommands(options);
  addLifeCommands(options);
  addTabCommands(options);
  addBenchmarkCommands(options);
  model.changed.connect(() => {
    for (const id of Object.values(CommandIDs)) {
      if (app.commands.hasCommand(id)) {
        app.commands.notifyCommandChanged(id);
      }
    }
  });
}
