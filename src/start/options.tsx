/** The options of a profile: drawn from their JSON Schema by Lab's form component, with fields like ours. */

import type { TranslationBundle } from '@jupyterlab/translation';
import { FormComponent } from '@jupyterlab/ui-components';
import type {
  ErrorSchema,
  FieldTemplateProps,
  ObjectFieldTemplateProps,
  RJSFSchema,
  WidgetProps
} from '@rjsf/utils';
import * as React from 'react';

import type { FieldErrors, IDraft } from './draft';
import type { ILiveValues, IOptionsSchema, OptionValue } from '../model/tokens';
import { moment } from '../model/words';
import { validator } from './validator';
import { Field, inputProps } from './fields';

interface IOptionFieldsProps {
  schema: IOptionsSchema;
  /** Whether to draw the options that everyone looks at, or the others. */
  first: boolean;
  values: IDraft['options'];
  /** What the batch system reports for some of them; null where it does not. */
  live: ILiveValues | null;
  /** By path, such as `options.account`. */
  errors: FieldErrors;
  trans: TranslationBundle;
  /** Told all values of this part. */
  onChange: (values: IDraft['options']) => void;
}

const TEMPLATES = {
  FieldTemplate: OptionField,
  ObjectFieldTemplate: Together
};
const WIDGETS = {
  TextWidget: TextInput,
  SelectWidget: Choice,
  CheckboxWidget: CheckBox
};

/** Names of options that decide how long one waits. */
const QUEUES = /^(queue|partition|qos|class)$/i;

/** Whether everyone looks at an option: it must be given, or decides when jobs start and end. */
export function isFirst(name: string, schema: IOptionsSchema): boolean {
  return (
    schema.required.includes(name) ||
    schema.properties[name].kind === 'duration' ||
    QUEUES.test(name)
  );
}

/** The first options of a profile, or the others. */
export function OptionFields(props: IOptionFieldsProps): JSX.Element | null {
  const { schema, first, values, live, trans } = props;
  const drawn = React.useMemo(
    () => drawnSchema(schema, first, live, trans),
    [schema, first, live, trans]
  );
  const names = Object.keys(drawn.schema.properties ?? {});
  if (names.length === 0) {
    return null;
  }
  const extraErrors: Record<string, ErrorSchema> = {};
  for (const name of names) {
    const error = props.errors[`options.${name}`];
    if (error) {
      extraErrors[name] = { __errors: [error] } as ErrorSchema;
    }
  }
  return (
    <FormComponent
      {...drawn}
      // A form cannot hold another one.
      tagName="div"
      className="jp-gpucluster-Options"
      idPrefix="jp-gpucluster-new-option"
      idSeparator="-"
      templates={TEMPLATES}
      widgets={WIDGETS}
      validator={validator}
      // The dialog says when what is wrong is told, and the server has its say.
      noValidate
      showErrorList={false}
      extraErrors={extraErrors}
      formData={Object.fromEntries(names.map(name => [name, values[name]]))}
      onChange={({ formData }) => {
        const typed: IDraft['options'] = {};
        for (const [name, value] of Object.entries(formData ?? {})) {
          typed[name] = (value ?? '') as OptionValue;
        }
        props.onChange(typed);
      }}
    />
  );
}

/** A part of the schema, with words for its fields. The draft has the defaults, which may be cleared. */
function drawnSchema(
  whole: IOptionsSchema,
  first: boolean,
  live: ILiveValues | null,
  trans: TranslationBundle
): { schema: RJSFSchema; uiSchema: Record<string, object> } {
  const properties: Record<string, RJSFSchema> = {};
  const uiSchema: Record<string, object> = {};
  for (const [name, option] of Object.entries(whole.properties)) {
    if (isFirst(name, whole) === first) {
      const { title } = option;
      const required = whole.required.includes(name);
      properties[name] = {
        ...option,
        title: required ? trans.__('%1 (required)', title) : title
      };
      delete properties[name].default;
      const reported = live?.values[name] ?? [];
      if (live !== null && reported.length > 0) {
        properties[name].examples = reported;
        properties[name].description = [
          option.description,
          trans.__('%1 answered at %2.', live.title, moment(live.asked))
        ]
          .join(' ')
          .trim();
      }
      const nothing = required ? trans.__('Choose one') : trans.__('Default');
      uiSchema[name] = {
        'ui:placeholder': option.enum === undefined ? option.allowed : nothing,
        'ui:options': {
          // The batch system is asked about queues with GPUs only.
          unreported:
            option.values === 'queues'
              ? trans.__('not one of your queues with GPUs')
              : trans.__('not reported for your queues with GPUs')
        }
      };
    }
  }
  return {
    schema: {
      type: 'object',
      properties,
      required: first ? whole.required : []
    },
    uiSchema
  };
}

function Together(props: ObjectFieldTemplateProps): JSX.Element {
  return <>{props.properties.map(property => property.content)}</>;
}

function OptionField(props: FieldTemplateProps): JSX.Element {
  const { schema, children } = props;
  if (schema.type === 'object') {
    return children;
  }
  return (
    <Field
      id={props.id}
      label={props.label}
      help={schema.description}
      error={props.rawErrors?.join(' ')}
      checkbox={schema.type === 'boolean'}
    >
      {() => children}
    </Field>
  );
}

function TextInput(props: WidgetProps): JSX.Element {
  const number = props.schema.type === 'integer';
  const reported = reportedFor(props);
  const list = `${props.id}-reported`;
  return (
    <>
      <input
        {...widgetProps(props)}
        className="jp-mod-styled"
        type={number ? 'number' : 'text'}
        step={number ? 'any' : undefined}
        placeholder={props.placeholder}
        spellCheck={false}
        list={reported.length > 0 ? list : undefined}
        value={(props.value ?? '') as string}
        onChange={event => props.onChange(event.target.value)}
      />
      {reported.length > 0 && (
        <datalist id={list}>
          {reported.map(name => (
            <option key={name} value={name} />
          ))}
        </datalist>
      )}
    </>
  );
}

function reportedFor(props: WidgetProps): string[] {
  return (props.schema.examples ?? []) as string[];
}

/** A closed list stays as the profile has it; what is not reported is marked. */
function Choice(props: WidgetProps): JSX.Element {
  const reported = reportedFor(props);
  return (
    <select
      {...widgetProps(props)}
      className="jp-mod-styled"
      value={(props.value ?? '') as string}
      onChange={event => props.onChange(event.target.value)}
    >
      <option value="">{props.placeholder}</option>
      {props.options.enumOptions?.map(({ value, label }) => (
        <option key={label} value={value as string}>
          {reported.length === 0 || reported.includes(label)
            ? label
            : `${label} (${props.options.unreported as string})`}
        </option>
      ))}
    </select>
  );
}

function CheckBox(props: WidgetProps): JSX.Element {
  return (
    <input
      {...widgetProps(props)}
      type="checkbox"
      checked={props.value === true}
      onChange={event => props.onChange(event.target.checked)}
    />
  );
}

function widgetProps(props: WidgetProps): React.HTMLAttributes<HTMLElement> {
  const { id, name, required, schema, rawErrors } = props;
  return {
    ...inputProps(id, schema.description, rawErrors?.join(' ')),
    'aria-required': required || undefined,
    ...{ 'data-path': `options.${name}` }
  };
}
