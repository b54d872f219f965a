import fc from 'fast-check';
import type { ApiDocument, JsonSchema } from '../../src/api/document.ts';

/** Any JSON value, small. */
const anyJson = fc.jsonValue({ maxDepth: 2 });

/** Texts that broke programs. */
const strange = fc.constantFrom(
  '',
  ' ',
  '\0',
  '\r\nBcc: x@y.example',
  '\ud800',
  '%00',
  '../..',
  '{{1}}',
  '[]',
  'ü',
  '💥',
);

const text = fc.oneof(
  { arbitrary: fc.string({ unit: 'binary', maxLength: 20 }), weight: 3 },
  { arbitrary: strange, weight: 1 },
);

type Text = { readonly minLength?: number; readonly maxLength?: number; readonly format?: string };
type Bounds = {
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
};

/** Values of a JSON schema of the document. Most of them fit the schema; rules that it cannot say may still be broken. */
export function valuesOf(document: ApiDocument, schema: JsonSchema): fc.Arbitrary<unknown> {
  const { $ref, enum: values, anyOf, oneOf, type, properties, items, additionalProperties } = schema;
  const of = (each: unknown): fc.Arbitrary<unknown> => valuesOf(document, each as JsonSchema);
  if (typeof $ref === 'string') return of(document.components.schemas[$ref.split('/').at(-1) ?? '']);
  if ('const' in schema) return fc.constant(schema.const);
  if (Array.isArray(values)) return fc.constantFrom(...values);
  const alternatives = anyOf ?? oneOf;
  if (Array.isArray(alternatives)) return fc.oneof(...alternatives.map(of));
  if (Array.isArray(type)) return fc.oneof(...type.map((each) => of({ ...schema, type: each })));
  const { minimum = -10, maximum = 1_000, minItems = 0, maxItems = 3 } = schema as Bounds;
  switch (type) {
    case 'string':
      return textOf(schema as Text);
    case 'integer':
      return fc.integer({ min: minimum, max: maximum });
    case 'number':
      return fc.double({ min: minimum, max: maximum, noNaN: true });
    case 'boolean':
      return fc.boolean();
    case 'null':
      return fc.constant(null);
    case 'array':
      return fc.array(of(items ?? {}), { minLength: minItems, maxLength: Math.min(maxItems, 3) });
    case 'object':
      if (properties === undefined)
        return fc.dictionary(text, typeof additionalProperties === 'object' ? of(additionalProperties) : anyJson, {
          maxKeys: 3,
        });
      return objectsOf(
        Object.fromEntries(Object.entries(properties as object).map(([name, each]) => [name, of(each)])),
        schema,
      );
    default:
      return anyJson;
  }
}

/** Random objects, and the examples of the schema with some random fields: these pass more rules. */
function objectsOf(
  fields: Record<string, fc.Arbitrary<unknown>>,
  { required = [], examples = [] }: { readonly required?: string[]; readonly examples?: readonly object[] },
): fc.Arbitrary<unknown> {
  const random = fc.record(fields, { requiredKeys: required });
  if (examples.length === 0) return random;
  const some = fc.record(
    Object.fromEntries(
      Object.entries(fields).map(([name, each]) => [name, fc.option(each, { nil: undefined, freq: 1 })]),
    ),
  );
  const isGiven = ([, value]: [string, unknown]): boolean => value !== undefined;
  const changed = fc
    .tuple(fc.constantFrom(...examples), some)
    .map(([example, given]) => ({ ...example, ...Object.fromEntries(Object.entries(given).filter(isGiven)) }));
  return fc.oneof(random, changed);
}

function textOf({ format, minLength = 0, maxLength = 30 }: Text): fc.Arbitrary<string> {
  if (format === 'email') return fc.oneof(fc.emailAddress(), fc.constant('ann@mock.test'));
  if (format === 'date-time')
    return fc.integer({ min: -1_000, max: 8 * 86_400_000 }).map((later) => new Date(Date.now() + later).toISOString());
  if (format === 'ipv4') return fc.ipV4();
  if (minLength > 0) return text.map((each) => each.padEnd(minLength, 'x').slice(0, Math.min(maxLength, 200)));
  return text.map((each) => each.slice(0, maxLength));
}

/** The value with one place in it replaced, or with one more field. */
export function broken(value: unknown): fc.Arbitrary<unknown> {
  if (typeof value !== 'object' || value === null) return anyJson;
  const entries = Object.entries(value);
  const extra = fc.tuple(text, anyJson).map(([name, more]) => ({ ...value, [name]: more }));
  if (entries.length === 0) return fc.oneof(anyJson, extra);
  const inside = fc.nat(entries.length - 1).chain((index) => {
    const [name = '', child] = entries[index] ?? [];
    return broken(child).map((other) =>
      Array.isArray(value) ? value.with(Number(name), other) : { ...value, [name]: other },
    );
  });
  return fc.oneof(inside, inside, extra, anyJson);
}

/** An object as a URL-encoded form: its texts as they are, everything else as JSON. */
export function formOf(value: object): string {
  const fields = Object.entries(value).map(([name, each]) => [
    name,
    typeof each === 'string' ? each : JSON.stringify(each),
  ]);
  return new URLSearchParams(fields).toString();
}
