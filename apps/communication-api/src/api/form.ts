import { setImmediate as turn } from 'node:timers/promises';
import { z } from 'zod';
import { ServiceError } from '../domain/service-error.ts';
import { JsonValues } from './json-values.ts';

/** Longer than any field's name. */
const MAX_NAME = 200;
/** More fields than any request needs. */
const MAX_FIELDS = 2_000;
/** `config[imap][custom_proxy][host]` and one more. */
const MAX_DEPTH = 6;
/** Other requests are served after so many bytes of a form. */
const SLICE = 262_144;
const [SPACE, PERCENT, AMPERSAND, PLUS, EQUALS] = [0x20, 0x25, 0x26, 0x2b, 0x3d];
const FORBIDDEN = new Set(['__proto__', 'constructor', 'prototype']);

type Tree = { [name: string]: Tree | string[] | undefined };
type JsonSchema = z.core.JSONSchema.JSONSchema;

/** The fields of a form, in order. The schema of the request decides their meaning: see {@link decodeForm}. */
export class FormFields {
  readonly entries: (readonly [name: string, value: string])[] = [];

  /** @throws ServiceError 422 if there are too many fields, or if the name is too long */
  add(name: string, value: string): void {
    if (name.length > MAX_NAME)
      throw new ServiceError(
        422,
        'errors/unprocessable_entity',
        `${JSON.stringify(`${name.slice(0, 60)}…`)}: the name of a form field is longer than ${MAX_NAME} characters.`,
      );
    if (this.entries.length === MAX_FIELDS) throw tooManyFields();
    this.entries.push([name, value]);
  }

  /** The value of a text field that is given once. Texts need no other encoding. */
  textOf(name: string): string | undefined {
    const values = this.entries.filter(([each]) => each === name || each === `${name}[]`);
    return values.length === 1 ? values[0]?.[1] : undefined;
  }
}

const tooManyFields = (): ServiceError =>
  new ServiceError(422, 'errors/unprocessable_entity', `The form contains more than ${MAX_FIELDS} fields.`);

/**
 * Reads the fields of a URL-encoded form. Other requests are served while it is read.
 * @param bytes are overwritten
 * @throws ServiceError 422 as {@link FormFields.add} does
 */
export async function parseUrlEncoded(bytes: Buffer): Promise<FormFields> {
  const form = new FormFields();
  let pairs = 0;
  for (let start = 0; start < bytes.length; ) {
    // Empty ones count, too: a form could contain millions of them.
    if (pairs++ === MAX_FIELDS) throw tooManyFields();
    const end = indexOr(bytes.length, bytes.indexOf(AMPERSAND, start));
    const pair = bytes.subarray(start, end);
    const equals = indexOr(pair.length, pair.indexOf(EQUALS));
    if (pair.length > 0) form.add(await decoded(pair.subarray(0, equals)), await decoded(pair.subarray(equals + 1)));
    start = end + 1;
  }
  return form;
}

const indexOr = (none: number, index: number): number => (index === -1 ? none : index);

/** The text of a URL-encoded name or value. */
async function decoded(bytes: Buffer): Promise<string> {
  let length = 0;
  for (let at = 0; at < bytes.length; ) {
    const end = at + SLICE;
    for (; at < end && at < bytes.length; at++) {
      const byte = bytes[at] as number;
      // An escape that is none stays as it is.
      const hex = byte === PERCENT ? /^[\da-f]{2}/i.exec(bytes.toString('latin1', at + 1, at + 3)) : null;
      bytes[length++] = hex === null ? (byte === PLUS ? SPACE : byte) : Number.parseInt(hex[0], 16);
      if (hex !== null) at += 2;
    }
    if (at < bytes.length) await turn();
  }
  return bytes.toString('utf8', 0, length);
}

/** The schema of a request as JSON Schema. It decides how form fields are read. */
export const formSchemaOf = (schema: z.ZodType): JsonSchema =>
  // An empty registry: a schema with an id would become a reference.
  z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any', reused: 'inline', metadata: z.registry() });

/**
 * Makes the value of a request from form fields. A form contains only text, so the schema decides: objects and arrays
 * may be one field with JSON, fields with brackets (`to[0][identifier]`), or, for an array, one field per item. Numbers
 * and booleans are read from their text. A text that does not fit is left as it is, so that the schema reports it. An
 * optional field that is empty is absent: forms send the fields that nobody filled in, too.
 * @throws ServiceError 422 if one field is written in two of these ways
 */
export function decodeForm({ entries }: FormFields, schema: JsonSchema): Record<string, unknown> {
  const tree: Tree = Object.create(null);
  for (const [name, value] of entries) place(tree, name, value);
  return decodeObject(tree, schema);
}

function place(tree: Tree, name: string, value: string): void {
  const path = pathOf(name);
  const last = path.pop() ?? name;
  let parent = tree;
  for (const key of path) {
    const child = parent[key] ?? (Object.create(null) as Tree);
    if (Array.isArray(child)) throw twoWays(name);
    parent[key] = child;
    parent = child;
  }
  const values = parent[last] ?? [];
  if (!Array.isArray(values)) throw twoWays(name);
  values.push(value);
  parent[last] = values;
}

/** `to[0][identifier]` is `to`, `0`, `identifier`. A name that is not written like this is one name. */
function pathOf(name: string): string[] {
  const match = /^([^[\]]+)((?:\[[^[\]]*\])+)$/.exec(name);
  const [, first = '', rest = ''] = match ?? [];
  const path = match === null ? [name] : [first, ...[...rest.matchAll(/\[([^[\]]*)\]/g)].map(([, key = '']) => key)];
  // `to[]` is one item per field, as `to` is.
  if (path.length > 1 && path.at(-1) === '') path.pop();
  if (path.length > MAX_DEPTH || path.some((key) => FORBIDDEN.has(key)))
    throw new ServiceError(
      422,
      'errors/unprocessable_entity',
      'The name of a form field is nested too deeply or not allowed.',
    );
  return path;
}

const twoWays = (name: string): ServiceError =>
  new ServiceError(
    422,
    'errors/unprocessable_entity',
    `${/^[^[\]]*/.exec(name)?.[0]}: the form contains this field in two encodings. Send JSON, brackets or one field per item, not two of them.`,
  );

function decodeObject(tree: Tree, schema: JsonSchema | undefined): Record<string, unknown> {
  // fromEntries defines the properties, so that no name reaches a prototype.
  return Object.fromEntries(
    Object.entries(tree)
      .filter(([name, node]) => !(isEmpty(node) && isOptional(schema, name)))
      .map(([name, node]) => [name, decode(node ?? [], propertyOf(schema, name), name)]),
  );
}

function decode(node: Tree | string[], schema: JsonSchema | undefined, name: string): unknown {
  const kinds = kindsOf(schema);
  const items = kinds.find(({ type }) => type === 'array');
  if (!Array.isArray(node)) {
    if (items === undefined) return decodeObject(node, schema);
    const keys = Object.keys(node);
    if (!keys.every((key) => /^\d{1,4}$/.test(key))) return decodeObject(node, itemOf(items));
    return keys.sort((a, b) => Number(a) - Number(b)).map((key) => decode(node[key] ?? [], itemOf(items), name));
  }
  if (
    items !== undefined &&
    !(node.length === 1 && kinds.some(({ type }) => type === 'string') && !isJsonList(node[0]))
  ) {
    if (node.length === 1 && isJsonList(node[0])) return jsonOf(node[0] ?? '');
    if (node.some(isJsonList)) throw twoWays(name);
    return node.map((value) => decode([value], itemOf(items), name));
  }
  // A schema that takes one value reports a repeated field.
  if (node.length !== 1) return node;
  return scalar(node[0] ?? '', kinds);
}

const isJsonList = (value: string | undefined): boolean => value?.trimStart().startsWith('[') ?? false;

function scalar(value: string, kinds: readonly JsonSchema[]): unknown {
  const takes = (type: string): boolean => kinds.some((kind) => kind.type === type);
  if (takes('string')) return value;
  if (takes('object') && value.trimStart().startsWith('{')) return jsonOf(value);
  if ((takes('number') || takes('integer')) && /^-?\d+(\.\d+)?$/.test(value)) return Number(value);
  if (takes('boolean') && (value === 'true' || value === 'false')) return value === 'true';
  return value;
}

function jsonOf(text: string): unknown {
  new JsonValues().write(Buffer.from(text));
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** The alternatives of a schema. */
function kindsOf(schema: JsonSchema | undefined): readonly JsonSchema[] {
  if (schema === undefined) return [];
  const alternatives = schema.anyOf ?? schema.oneOf;
  return alternatives === undefined ? [schema] : alternatives.flatMap((each) => kindsOf(each as JsonSchema));
}

const isEmpty = (node: Tree | string[] | undefined): boolean =>
  Array.isArray(node) && node.length === 1 && node[0] === '';

const isOptional = (schema: JsonSchema | undefined, name: string): boolean => {
  const kinds = kindsOf(schema).filter(({ properties = {} }) => Object.hasOwn(properties, name));
  return kinds.length > 0 && kinds.every(({ required = [] }) => !required.includes(name));
};

function propertyOf(schema: JsonSchema | undefined, name: string): JsonSchema | undefined {
  for (const { properties, additionalProperties } of kindsOf(schema)) {
    if (properties !== undefined && Object.hasOwn(properties, name)) return properties[name] as JsonSchema;
    if (typeof additionalProperties === 'object') return additionalProperties as JsonSchema;
  }
  return undefined;
}

const itemOf = ({ items }: JsonSchema): JsonSchema | undefined =>
  typeof items === 'object' && !Array.isArray(items) ? (items as JsonSchema) : undefined;
