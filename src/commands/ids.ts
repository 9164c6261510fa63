/** The commands by name. */

export const CommandIDs = {
  showPanel: 'gpucluster:show-panel',
  create: 'gpucluster:new',
  refresh: 'gpucluster:refresh',
  openDashboard: 'gpucluster:open-dashboard',
  connect: 'gpucluster:connect',
  scale: 'gpucluster:scale',
  rename: 'gpucluster:rename',
  stop: 'gpucluster:stop',
  forget: 'gpucluster:forget',
  startAgain: 'gpucluster:start-again',
  copyRecipe: 'gpucluster:copy-recipe',
  showLog: 'gpucluster:show-log',
  openNotebook: 'gpucluster:open-notebook'
} as const;
