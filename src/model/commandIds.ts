/** The commands by name. */

export const CommandIDs = {
  showPanel: 'gpucluster:show-panel',
  create: 'gpucluster:new',
  tryHere: 'gpucluster:try-here',
  refresh: 'gpucluster:refresh',
  openDashboard: 'gpucluster:open-dashboard',
  openDetails: 'gpucluster:open-details',
  openLayout: 'gpucluster:open-layout',
  saveLayout: 'gpucluster:save-layout',
  follow: 'gpucluster:follow-active',
  connect: 'gpucluster:connect',
  autoConnect: 'gpucluster:auto-connect',
  notify: 'gpucluster:notify',
  scale: 'gpucluster:scale',
  rename: 'gpucluster:rename',
  stop: 'gpucluster:stop',
  stopByForce: 'gpucluster:stop-by-force',
  detach: 'gpucluster:detach',
  forget: 'gpucluster:forget',
  startAgain: 'gpucluster:start-again',
  fix: 'gpucluster:fix',
  resubmit: 'gpucluster:resubmit',
  copyRecipe: 'gpucluster:copy-recipe',
  showLog: 'gpucluster:show-log',
  openNotebook: 'gpucluster:open-notebook',
  benchmark: 'gpucluster:benchmark'
} as const;
