/** Commands about the tabs in the main area, and the settings that lead them. */

import { clusterIcon, dashboardIcon } from '../ui/icons';
import { CommandIDs } from '../model/commandIds';
import type { ICommandOptions } from './register';
import { addClusterCommand, guarded, schema, stringOf, text } from './register';

export function addTabCommands(options: ICommandOptions): void {
  const { app, preferences, tabs, trans } = options;
  addClusterCommand(options, CommandIDs.openDetails, {
    label: trans.__('Open details'),
    caption: trans.__('Open jobs, timeline, script and logs of a cluster'),
    icon: clusterIcon,
    args: { section: text(trans.__('Section to show, such as "timeline".')) },
    applies: () => true,
    execute: (cluster, args) => {
      tabs.openDetails(cluster.id, stringOf(args, 'section'));
    },
    // A restored tab says itself that its cluster is gone.
    otherwise: id => tabs.openDetails(id)
  });
  addClusterCommand(options, CommandIDs.choosePlot, {
    label: trans.__('All plots…'),
    caption: trans.__('Search the plots of a cluster’s dashboard'),
    icon: dashboardIcon,
    applies: cluster => cluster.dashboard !== null,
    execute: cluster => tabs.choosePlot(cluster.id)
  });
  addClusterCommand(options, CommandIDs.openLayout, {
    label: trans.__('Open dashboard layout'),
    caption: trans.__('Open the saved set of plots beside what is open'),
    icon: dashboardIcon,
    applies: cluster => cluster.dashboard !== null,
    execute: cluster => {
      options.active.id = cluster.id;
      tabs.openLayout(cluster.id);
    }
  });
  app.commands.addCommand(CommandIDs.saveLayout, {
    label: trans.__('Save open plots as dashboard layout'),
    caption: trans.__('Open dashboard layout will open these plots'),
    describedBy: { args: schema({}) },
    isEnabled: () => tabs.plots.length > 0,
    execute: guarded(options, () => preferences.set('layout', tabs.plots))
  });
  for (const [command, key, label, caption] of [
    [
      CommandIDs.follow,
      'followActiveCluster',
      trans.__('Dashboards follow the active cluster'),
      trans.__('Open dashboards follow the active cluster')
    ],
    [
      CommandIDs.autoConnect,
      'autoConnect',
      trans.__('Connect notebooks again after a kernel restart'),
      trans.__('A notebook that was connected gets its client again')
    ]
  ] as const) {
    app.commands.addCommand(command, {
      label,
      caption,
      describedBy: { args: schema({}) },
      isToggleable: true,
      isToggled: () => preferences.get(key),
      execute: guarded(options, () =>
        preferences.set(key, !preferences.get(key))
      )
    });
  }
  preferences.changed.connect(() => {
    app.commands.notifyCommandChanged(CommandIDs.follow);
    app.commands.notifyCommandChanged(CommandIDs.autoConnect);
  });
}
