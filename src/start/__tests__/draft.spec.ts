import { describe, expect, it } from 'vitest';

import { ApiError } from '../../model/api';
import { errorsOf, fieldsOf, suspectOf } from '../blame';
import {
  check,
  checkAmounts,
  draftFor,
  draftLike,
  obstacles,
  preferredEnvironment,
  preferredProfile,
  requestOf
} from '../draft';

import {
  aCluster,
  anEnvironment,
  anOption,
  aProfile,
  optionsOf,
  trans
} from '../../__tests__/fakes';

const options = optionsOf(
  {
    account: anOption(),
    nodes: anOption({ kind: 'integer', type: 'integer', default: 2 }),
    debug: anOption({ kind: 'boolean', type: 'boolean', default: true }),
    queue: anOption({ kind: 'enum', enum: ['short', 'long'] })
  },
  'account'
);

describe('what is offered first', () => {
  const plain = aProfile({ name: 'plain' });
  const here = aProfile({ name: 'here', matches_host: true });
  const usual = aProfile({ name: 'usual', default: true });

  it('is the profile asked for, the default, one for this host, or the first', () => {
    const all = [plain, here, usual];
    expect(preferredProfile(all, 'plain')?.name).toBe('plain');
    expect(preferredProfile(all)?.name).toBe('usual');
    expect(preferredProfile([plain, here])?.name).toBe('here');
    expect(preferredProfile([plain], 'gone')?.name).toBe('plain');
    expect(preferredProfile([])).toBeUndefined();
  });

  it('is never an environment that cannot run the profile', () => {
    const bare = anEnvironment({
      name: 'bare',
      suitable: false,
      problems: ['dask is missing.']
    });
    const cpu = anEnvironment({
      name: 'cpu',
      gpu_problems: ['dask-cuda is missing.']
    });
    const gpu = anEnvironment({ name: 'gpu' });
    const all = [bare, cpu, gpu];
    const gpus = aProfile({ unit: 'GPUs' });
    expect(preferredEnvironment(all, aProfile(), ['bare', 'gpu'])).toBe('gpu');
    expect(preferredEnvironment(all, aProfile(), [''])).toBe('cpu');
    expect(preferredEnvironment(all, gpus, ['cpu'])).toBe('gpu');
    expect(preferredEnvironment([bare], gpus, ['bare'])).toBe('');
    expect(obstacles(cpu, gpus)).toEqual(['dask-cuda is missing.']);
    expect(obstacles(cpu, { ...gpus, simulated: true })).toEqual([]);
  });
});

describe('a draft', () => {
  it('starts with the defaults of its profile and keeps the name', () => {
    const first = { ...draftFor(aProfile()), name: 'mine' };
    const draft = draftFor(aProfile({ default_workers: 3, options }), first);
    expect(draft.name).toBe('mine');
    expect(draft.amounts.workers).toBe('3');
    expect(draft.options).toEqual({
      account: '',
      nodes: 2,
      debug: true,
      queue: ''
    });
  });

  it('repeats what another cluster was given, also what a command line wrote as text', () => {
    const given = {
      account: 7,
      nodes: '3',
      debug: 'no',
      queue: 'long',
      gone: 1
    };
    const profile = aProfile({ options });
    expect(draftLike(aCluster({ options: given }), profile).options).toEqual({
      account: '7',
      nodes: 3,
      debug: false,
      queue: 'long'
    });
  });

  it('becomes a request with numbers as numbers and without empty fields', () => {
    const draft = draftFor(aProfile({ options }));
    expect(requestOf(draft, 'r1')).toEqual({
      profile: 'local',
      target: { workers: 2 },
      options: { nodes: 2, debug: true },
      request_id: 'r1'
    });
    const filled = {
      ...draft,
      name: ' mine ',
      environment: 'python3',
      amounts: { ...draft.amounts, adaptive: true, maximum: '4' }
    };
    expect(requestOf(filled, 'r1')).toMatchObject({
      name: 'mine',
      kernel: 'python3',
      target: { minimum: 0, maximum: 4 }
    });
  });

  it('is checked field by field', () => {
    const profile = aProfile({ options });
    const draft = draftFor(profile);
    const wrong = {
      ...draft,
      amounts: { ...draft.amounts, workers: '9' },
      options: { ...draft.options, nodes: 'two' }
    };
    expect(Object.keys(check(wrong, profile, trans))).toEqual([
      'target.workers',
      'options.account',
      'options.nodes'
    ]);
  });

  it('says of a value what may be given, and of none that it is needed', () => {
    const schema = optionsOf(
      {
        account: anOption(),
        nodes: anOption({
          kind: 'integer',
          type: 'integer',
          maximum: 4,
          allowed: 'a whole number, at most 4'
        })
      },
      'account'
    );
    const profile = aProfile({ options: schema });
    const draft = { ...draftFor(profile), options: { account: ' ', nodes: 9 } };
    expect(check(draft, profile, trans)).toEqual({
      'options.account': 'Required.',
      'options.nodes': 'Give a whole number, at most 4.'
    });
  });
});

describe('amounts', () => {
  const amounts = { adaptive: false, workers: '2', minimum: '0', maximum: '2' };

  it.each(['0', '-1', '1.5', '', 'many', '5', '1e3'])(
    'of %j workers are refused where four are allowed',
    workers => {
      const errors = checkAmounts({ ...amounts, workers }, 4, trans);
      expect(Object.keys(errors)).toEqual(['target.workers']);
    }
  );

  it('of a range may begin at none, but not above its end', () => {
    const range = { ...amounts, adaptive: true };
    expect(checkAmounts(range, 4, trans)).toEqual({});
    expect(checkAmounts({ ...range, minimum: '3' }, 4, trans)).toHaveProperty([
      'target.maximum'
    ]);
  });
});

describe('the field to look at after a failure', () => {
  const profile = aProfile({
    options: optionsOf({
      account: anOption({ title: 'Project' }),
      memory: anOption({ kind: 'memory', title: 'Memory per worker' }),
      walltime: anOption({ kind: 'duration', title: 'Time' })
    })
  });
  const suspect = (reason: string, ...states: string[]): string =>
    suspectOf(aCluster({ phase: 'failed', reason }), states, profile);

  it('is what the last job ran out of', () => {
    expect(suspect('', 'timeout', 'out_of_memory')).toBe('options.memory');
    expect(suspect('', 'out_of_memory', 'timeout')).toBe('options.walltime');
  });

  it('is the one whose name or title the reason has as a word', () => {
    expect(suspect('Invalid account or partition')).toBe('options.account');
    expect(suspect('No such project.')).toBe('options.account');
    expect(suspect('Too many accounts.')).toBe('');
  });

  it('is none where nothing points at one', () => {
    expect(suspect('The node failed.', 'node_fail')).toBe('');
  });
});

describe('a refusal', () => {
  const fields = fieldsOf(draftFor(aProfile({ options })));
  const refusal = (detail: string, status = 422) =>
    new ApiError('No.', { hint: 'Do this.', detail, status });

  it('is shown beside the field that it names', () => {
    expect(errorsOf(refusal('options.account'), fields)).toEqual({
      'options.account': 'No. Do this.'
    });
    expect(errorsOf(refusal('account'), fields)).toHaveProperty([
      'options.account'
    ]);
    expect(errorsOf(refusal('target'), fields)).toHaveProperty([
      'target.workers'
    ]);
  });

  it('is shown on top where it names no field, or is no fault of the input', () => {
    expect(errorsOf(refusal('elsewhere'), fields)).toEqual({
      '': 'No. Do this.'
    });
    expect(errorsOf(refusal('name', 503), fields)).toHaveProperty(['']);
    expect(errorsOf(new Error('Oh.'), fields)).toEqual({ '': 'Oh.' });
  });
});
