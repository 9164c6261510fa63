import { describe, expect, it } from 'vitest';

import { recipeOf } from '../recipe';
import { aCluster } from '../../__tests__/fakes';

const options = { account: "o'hara lab", exclusive: true, cpus: 4 };

describe('a recipe', () => {
  it('as a command quotes what a shell would take apart', () => {
    expect(recipeOf(aCluster({ options }), 'command')).toBe(
      'jupyter gpucluster start local --workers 2 ' +
        "--option 'account=o'\\''hara lab' --option exclusive=true " +
        '--option cpus=4 --python /usr/bin/python3'
    );
  });

  it('counts in the cluster’s unit, or follows the load', () => {
    const range = { minimum: 0, maximum: 4 };
    expect(recipeOf(aCluster({ unit: 'GPUs' }), 'command')).toContain(
      '--gpus 2 '
    );
    expect(recipeOf(aCluster({ target: range }), 'command')).toContain(
      '--adapt 0 4 '
    );
    expect(recipeOf(aCluster({ target: range }), 'python')).toContain(
      'adapt=(0, 4)'
    );
  });

  it('as Python writes Python’s own values', () => {
    expect(recipeOf(aCluster({ options }), 'python')).toContain(
      'GPUCluster("local", workers=2, ' +
        'options={"account": "o\'hara lab", "exclusive": True, "cpus": 4}, ' +
        'python="/usr/bin/python3")'
    );
  });

  it('as a profile makes what was chosen the default', () => {
    expect(recipeOf(aCluster({ options }), 'profile')).toContain(
      'options:\n  "account": {default: "o\'hara lab"}\n' +
        '  "exclusive": {default: true}\n  "cpus": {default: 4}\n'
    );
  });
});
