/** Checks values against JSON Schema by reading it: no code is made of text, which strict pages forbid. */

import type { ReadonlyJSONObject } from '@lumino/coreutils';
import type { ErrorSchema, RJSFSchema, ValidatorType } from '@rjsf/utils';

/** What is wrong with one value: the broken keyword, and the path. */
interface IFault {
  name: string;
  property: string;
  message: string;
  stack: string;
}

/** The keywords of single values that schemas of options use: whether a value holds to them. */
const KEYWORDS: Readonly<
  Record<string, (value: unknown, asked: never) => boolean>
> = {
  type: (value, type: string) =>
    type === 'integer'
      ? Number.isInteger(value)
      : type === 'object'
        ? isObject(value)
        : typeof value === type,
  enum: (value, choices: unknown[]) => choices.includes(value),
  minimum: (value, least: number) =>
    typeof value !== 'number' || value >= least,
  maximum: (value, most: number) => typeof value !== 'number' || value <= most,
  maxLength: (value, most: number) =>
    typeof value !== 'string' || [...value].length <= most,
  pattern: (value, pattern: string) =>
    typeof value !== 'string' || new RegExp(pattern, 'u').test(value)
};

/** The validator that Lab's form component asks for, for schemas of options. */
export const validator: ValidatorType<ReadonlyJSONObject> = {
  isValid: (schema, value) => faultsOf(schema, value).length === 0,
  rawValidation: <T>(schema: RJSFSchema, value?: unknown) => ({
    errors: faultsOf(schema, value) as T[]
  }),
  toErrorList: () => [],
  validateFormData: (value, schema) => {
    const errors = faultsOf(schema, value);
    const byName = errors.map(({ property, message }) => [
      property.slice(1),
      { __errors: [message] }
    ]);
    return {
      errors,
      errorSchema: Object.fromEntries(byName) as ErrorSchema<ReadonlyJSONObject>
    };
  }
};

/** Everything that is wrong, in the order of the schema; of each value the first thing. */
function faultsOf(schema: RJSFSchema, value: unknown, path = ''): IFault[] {
  const broken = Object.entries(KEYWORDS).find(([keyword, holds]) => {
    const asked: unknown = schema[keyword];
    return asked !== undefined && !holds(value, asked as never);
  });
  if (broken !== undefined) {
    return [fault(broken[0], path)];
  }
  if (!isObject(value)) {
    return [];
  }
  const { properties = {}, required = [], additionalProperties } = schema;
  const known = Object.entries(properties).flatMap(([name, part]) => {
    if (Object.hasOwn(value, name)) {
      return faultsOf(part as RJSFSchema, value[name], `${path}.${name}`);
    }
    return required.includes(name)
      ? [fault('required', `${path}.${name}`)]
      : [];
  });
  const unknown = Object.keys(value).filter(
    name => additionalProperties === false && !Object.hasOwn(properties, name)
  );
  return [
    ...known,
    ...unknown.map(name => fault('additionalProperties', `${path}.${name}`))
  ];
}

function fault(keyword: string, path: string): IFault {
  const text = `${path} breaks ${keyword}`;
  return { name: keyword, property: path, message: text, stack: text };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
