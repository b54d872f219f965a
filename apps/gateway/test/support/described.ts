import { Ajv2020 } from 'ajv/dist/2020.js';
import { type Reply, send } from 'headgate-testbed/raw-http';
import { expect } from 'vitest';
import { type AdminGateway, askAdmin } from './admin.ts';

interface Schema {
  readonly [name: string]: unknown;
}

interface Response {
  readonly content: Readonly<Record<string, { schema: Schema }>>;
  readonly headers?: Readonly<Record<string, { readonly $ref: string }>>;
}

/** An operation of the document. */
export interface Described {
  readonly operationId: string;
  readonly description?: string;
  readonly security: readonly object[];
  readonly parameters?: readonly { readonly name: string; readonly in: string }[];
  readonly responses: Readonly<Record<string, Response>>;
}

/** The OpenAPI document of the Admin API, or of the decision API. */
export interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Described>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>;
    readonly headers: Readonly<Record<string, { readonly required?: boolean }>>;
  };
}

export async function documentOf({ adminPort }: Pick<AdminGateway, 'adminPort'>): Promise<Document> {
  return JSON.parse((await askAdmin(adminPort, 'GET', '/v1/openapi.json', { as: undefined })).text) as Document;
}

/** The document of the listener on a port. */
export async function documentAt(port: number): Promise<Document> {
  return JSON.parse((await send(port, { path: '/v1/openapi.json' })).text) as Document;
}

const ajv = new Ajv2020({ strict: false });
const validators = new WeakMap<object, ReturnType<typeof ajv.compile>>();

/** The answer is what the document describes, fields included. Returns its value. */
// biome-ignore lint/suspicious/noExplicitAny: tests read any answer
export function expectDescribed(document: Document, exchange: Parameters<typeof expectDescribedFields>[1]): any {
  const { method, path, reply } = exchange;
  const described = document.paths[path.split('?', 1)[0] as string]?.[method.toLowerCase()];
  const schema = described?.responses[String(reply.status)]?.content['application/json']?.schema;
  if (schema === undefined) throw new Error(`the document has no ${reply.status} of ${method} ${path}: ${reply.text}`);
  // References are the document's own.
  const validate = validators.get(schema) ?? ajv.compile({ ...schema, components: document.components });
  validators.set(schema, validate);
  const value = JSON.parse(reply.text);
  expect(validate(value) ? [] : validate.errors).toEqual([]);
  expectDescribedFields(document, exchange);
  return value;
}

/** Fields of every HTTP answer, which a client does not read. */
const OF_HTTP = [
  ...['cache-control', 'connection', 'content-length', 'content-type', 'date', 'keep-alive', 'transfer-encoding'],
  'x-content-type-options',
];

/** The answer has the header fields that the document describes, and no other. */
export function expectDescribedFields(
  { paths, components }: Document,
  { method, path, reply }: { readonly method: string; readonly path: string; readonly reply: Reply },
): void {
  const response = paths[path.split('?', 1)[0] as string]?.[method.toLowerCase()]?.responses[reply.status];
  if (response === undefined) throw new Error(`the document has no ${reply.status} of ${method} ${path}`);
  const described = Object.keys(response.headers ?? {});
  const sent = Object.keys(reply.headers).filter((name) => !OF_HTTP.includes(name));
  expect(described).toEqual(expect.arrayContaining(sent));
  expect(sent).toEqual(expect.arrayContaining(described.filter((name) => components.headers[name]?.required)));
}
