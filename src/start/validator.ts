/** The validator of Lab's own forms, for the options of a profile. */

import type { ReadonlyJSONObject } from '@lumino/coreutils';
import type { RJSFSchema } from '@rjsf/utils';
import { customizeValidator } from '@rjsf/validator-ajv8';

import type { IOptionsSchema, OptionValue } from '../model/types';

/** What ajv reports of a value. */
interface IFault {
  keyword: string;
  instancePath: string;
  params: { missingProperty?: string; additionalProperty?: string };
}

export const validator = customizeValidator<ReadonlyJSONObject>({
  ajvOptionsOverrides: { ownProperties: true }
});

/** ajv keeps what it compiled by the schema's object. */
const plain = new WeakMap<IOptionsSchema, RJSFSchema>();

/** Whether this page lets ajv compile; a strict Content-Security-Policy does not. */
let compiles = true;

/**
 * The broken keyword of each option that a schema refuses.
 *
 * Empty where the page forbids code made of text: then only the server checks.
 */
export function faultsOf(
  schema: IOptionsSchema,
  values: Readonly<Record<string, OptionValue>>
): Record<string, string> {
  if (!compiles) {
    return {};
  }
  const { errors = [], validationError } = validator.rawValidation<IFault>(
    withoutDialect(schema),
    values
  );
  if (validationError instanceof EvalError) {
    compiles = false;
  }
  return Object.fromEntries(
    errors.map(({ keyword, instancePath, params }) => [
      params.missingProperty ??
        params.additionalProperty ??
        instancePath.slice(1),
      keyword
    ])
  );
}

/** The schema without the name of its dialect, which this build of ajv does not bring. */
function withoutDialect(schema: IOptionsSchema): RJSFSchema {
  let known = plain.get(schema);
  if (known === undefined) {
    known = { ...schema };
    delete known.$schema;
    plain.set(schema, known);
  }
  return known;
}
