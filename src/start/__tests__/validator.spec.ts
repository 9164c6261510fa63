import { afterEach, describe, expect, it, vi } from 'vitest';

import type { IOptionsSchema, OptionValue } from '../../model/tokens';
import { faultsOf } from '../validator';
import { anOption, optionsOf } from '../../__tests__/fakes';

const schema = optionsOf(
  {
    account: anOption({ pattern: '^(?:[a-z][0-9]*)$', maxLength: 4 }),
    nodes: anOption({
      kind: 'integer',
      type: 'integer',
      minimum: 1,
      maximum: 4
    }),
    debug: anOption({ kind: 'boolean', type: 'boolean' }),
    queue: anOption({ kind: 'enum', enum: ['short', 'long'] }),
    // As the server writes them.
    note: anOption({
      pattern: String.raw`^[^\u0000-\u001f\u007f-\u009f\u2028\u2029]*$`
    }),
    time: anOption({
      kind: 'duration',
      pattern: String.raw`^\s*(([0-9]+-)?[0-9]+:[0-9]+:[0-9]+|[0-9]+-[0-9]+(:[0-9]+)?|[0-9]+|([0-9]+([.][0-9]+)?\s*[A-Za-z]+\s*)+)\s*$`
    })
  },
  'account'
);

function faults(
  values: Record<string, OptionValue>,
  whole: IOptionsSchema = schema
): string[] {
  return Object.entries(faultsOf(whole, { account: 'a1', ...values })).map(
    ([name, keyword]) => `${name} ${keyword}`
  );
}

describe('the check of options', () => {
  it('takes what the schema allows', () => {
    expect(faults({})).toEqual([]);
    expect(
      faults({
        nodes: 4,
        debug: false,
        queue: 'long',
        note: 'größer 🙂',
        time: '1 h 30 min'
      })
    ).toEqual([]);
    expect(faults({ account: 'a🙂' })).toEqual(['account pattern']);
  });

  it.each([
    [{ nodes: 0 }, 'nodes minimum'],
    [{ nodes: 5 }, 'nodes maximum'],
    [{ nodes: 1.5 }, 'nodes type'],
    [{ nodes: '2' }, 'nodes type'],
    [{ debug: 'true' }, 'debug type'],
    [{ queue: 'medium' }, 'queue enum'],
    [{ account: 7 }, 'account type'],
    [{ account: 'a1\n' }, 'account pattern'],
    [{ account: 'a1234' }, 'account maxLength'],
    [{ note: 'a\tb' }, 'note pattern'],
    [{ time: 'soon' }, 'time pattern'],
    [{ colour: 'red' }, 'colour additionalProperties'],
    [{ constructor: 'x' }, 'constructor additionalProperties']
  ])('refuses %j', (values, expected) => {
    expect(faults(values)).toEqual([expected]);
  });

  it('names everything that is wrong', () => {
    const found = faultsOf(schema, { queue: 'x', nodes: 9, other: 1 });
    expect(found).toEqual({
      account: 'required',
      nodes: 'maximum',
      queue: 'enum',
      other: 'additionalProperties'
    });
  });

  it('does not take what every object inherits for a value', () => {
    const odd = optionsOf({ constructor: anOption() }, 'constructor');
    expect(faultsOf(odd, {})).toEqual({ constructor: 'required' });
  });
});

describe('where no code may be made of text', () => {
  afterEach(() => {
    vi.unstubAllGlobals();
    vi.resetModules();
  });

  it('the check is left to the server, and is not tried again', async () => {
    vi.resetModules();
    const afresh = await import('../validator');
    const refuse = vi.fn(function () {
      throw new EvalError('This page forbids it.');
    });
    vi.stubGlobal('Function', refuse);
    const options = optionsOf({ nodes: anOption({ type: 'integer' }) });
    expect(afresh.faultsOf(options, { nodes: 'x' })).toEqual({});
    expect(refuse).toHaveBeenCalled();
    refuse.mockClear();
    expect(afresh.faultsOf(options, { nodes: 'x' })).toEqual({});
    expect(refuse).not.toHaveBeenCalled();
    vi.unstubAllGlobals();
    expect(faultsOf(options, { nodes: 'x' })).toEqual({ nodes: 'type' });
  });
});
