/** How to start a cluster like another one, outside of this page. */

import type { ICluster, OptionValue } from '../model/tokens';

/** The forms in which the way to start a cluster can be copied. */
export type RecipeForm = 'command' | 'python' | 'profile';

export function recipeOf(cluster: ICluster, form: RecipeForm): string {
  switch (form) {
    case 'command':
      return commandOf(cluster);
    case 'python':
      return pythonOf(cluster);
    case 'profile':
      return profileOf(cluster);
  }
}

function commandOf(cluster: ICluster): string {
  const { minimum, maximum } = cluster.target;
  const amount =
    minimum !== maximum
      ? ['--adapt', String(minimum), String(maximum)]
      : [cluster.unit === 'GPUs' ? '--gpus' : '--workers', String(maximum)];
  const options = Object.entries(cluster.options).flatMap(([name, value]) => [
    '--option',
    `${name}=${value}`
  ]);
  const words = ['start', cluster.profile, ...amount, ...options];
  if (cluster.python !== '') {
    words.push('--python', cluster.python);
  }
  return ['jupyter', 'gpucluster', ...words.map(shellWord)].join(' ');
}

function pythonOf(cluster: ICluster): string {
  const { minimum, maximum } = cluster.target;
  const parts = [
    JSON.stringify(cluster.profile),
    minimum !== maximum
      ? `adapt=(${minimum}, ${maximum})`
      : `workers=${maximum}`
  ];
  const options = Object.entries(cluster.options).map(
    ([name, value]) => `${JSON.stringify(name)}: ${pythonValue(value)}`
  );
  if (options.length > 0) {
    parts.push(`options={${options.join(', ')}}`);
  }
  if (cluster.python !== '') {
    parts.push(`python=${JSON.stringify(cluster.python)}`);
  }
  return [
    'from jupyter_gpucluster import GPUCluster',
    '',
    `cluster = GPUCluster(${parts.join(', ')})`,
    'client = cluster.get_client()',
    ''
  ].join('\n');
}

/** A file that is merged over the profile: what was chosen becomes its defaults. */
function profileOf(cluster: ICluster): string {
  const options = Object.entries(cluster.options).map(
    ([name, value]) =>
      `  ${JSON.stringify(name)}: {default: ${JSON.stringify(value)}}`
  );
  return [
    `# Save as gpucluster/profiles/${cluster.profile}.yaml below a data directory of Jupyter`,
    '# (jupyter --paths lists them): what was chosen becomes the default.',
    ...(options.length > 0 ? ['options:', ...options] : ['options: {}']),
    ''
  ].join('\n');
}

function pythonValue(value: OptionValue): string {
  if (typeof value === 'boolean') {
    return value ? 'True' : 'False';
  }
  return JSON.stringify(value);
}

/** A word that a POSIX shell reads as it is. */
function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word)
    ? word
    : `'${word.replaceAll("'", `'\\''`)}'`;
}
