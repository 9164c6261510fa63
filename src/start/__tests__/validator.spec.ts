import { afterEach, describe, expect, it, vi } from 'vitest';

import type { IOptionsSchema } from '../../model/tokens';
import { validator } from '../validator';
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

function faults(values: object, whole: IOptionsSchema = schema): string[] {
  const given = { account: 'a1', ...values };
  const { errors } = validator.validateFormData(given, whole);
  expect(validator.isValid(whole, given, whole)).toBe(errors.length === 0);
  return errors.map(({ property, name }) => `${property} ${name}`);
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
    expect(faults({ account: 'a🙂' })).toEqual(['.account pattern']);
  });

  it.each([
    [{ nodes: 0 }, '.nodes minimum'],
    [{ nodes: 5 }, '.nodes maximum'],
    [{ nodes: 1.5 }, '.nodes type'],
    [{ nodes: '2' }, '.nodes type'],
    [{ debug: 'true' }, '.debug type'],
    [{ queue: 'medium' }, '.queue enum'],
    [{ account: 7 }, '.account type'],
    [{ account: 'a1\n' }, '.account pattern'],
    [{ account: 'a1234' }, '.account maxLength'],
    [{ note: 'a\tb' }, '.note pattern'],
    [{ time: 'soon' }, '.time pattern'],
    [{ colour: 'red' }, '.colour additionalProperties'],
    [{ constructor: 'x' }, '.constructor additionalProperties']
  ])('refuses %j', (values, expected) => {
    expect(faults(values)).toEqual([expected]);
  });

  it('names everything that is wrong, in the order of the schema', () => {
    const { errors, errorSchema } = validator.validateFormData(
      { queue: 'x', nodes: 9, other: 1 },
      schema
    );
    expect(errors.map(item => item.property)).toEqual([
      '.account',
      '.nodes',
      '.queue',
      '.other'
    ]);
    expect(errorSchema).toHaveProperty(['account', '__errors']);
    expect(validator.rawValidation(schema, {}).errors).toHaveLength(1);
    expect(validator.isValid(schema, undefined, schema)).toBe(false);
  });

  it('does not take what every object inherits for a value', () => {
    const odd = optionsOf({ constructor: anOption() }, 'constructor');
    const { errors } = validator.validateFormData({}, odd);
    expect(errors.map(item => item.name)).toEqual(['required']);
  });
});

describe('where no code may be made of text', () => {
  afterEach(() => vi.unstubAllGlobals());

  it('the check works all the same', () => {
    const refuse = vi.fn(function () {
      throw new EvalError('This page forbids it.');
    });
    vi.stubGlobal('Function', refuse);
    vi.stubGlobal('eval', refuse);
    // eslint-disable-next-line @typescript-eslint/no-implied-eval -- this is what must fail
    expect(() => new Function('return 1')).toThrow('forbids');
    refuse.mockClear();
    expect(faults({ nodes: 9, queue: 'x', time: 'soon' })).toHaveLength(3);
    expect(refuse).not.toHaveBeenCalled();
  });
});
