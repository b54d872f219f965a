import { createProblem } from 'headgate/http';
import { z } from 'zod';
import { version } from '../operations/version.ts';
import type { DescribedOperation } from './operation.ts';
import { problem } from './schemas.ts';

type Json = Record<string, unknown>;

/** What a document describes besides its operations. */
export interface DocumentedApi {
  readonly title: string;
  readonly description: string;
  readonly securitySchemes: Json;
  /** The security of an operation that needs a token or a key: one of these schemes is enough. */
  readonly security: readonly Json[];
  /** Answers of the listener beside the operations, by path. */
  readonly paths?: Readonly<Record<string, Json>>;
  /** Header fields of answers, by name, besides {@link FIELDS} or in place of them. */
  readonly fields?: Json;
}

const ERROR = { $ref: '#/components/schemas/Problem' };

/** The header fields of answers. */
const FIELDS: Json = {
  'x-request-id': {
    description: 'Identifies the request, also in the log',
    required: true,
    schema: { type: 'string' },
  },
  etag: {
    description: 'The version of the limit, for `If-Match`. Absent from the answer to `dryRun`',
    schema: { type: 'string' },
  },
  'retry-after': {
    description: 'After how many seconds a retry makes sense',
    required: true,
    schema: { type: 'integer', minimum: 0 },
  },
  'www-authenticate': { description: 'Asks for a token', required: true, schema: { type: 'string' } },
};

/** The OpenAPI 3.1 document of the operations. The schemas that check requests describe them too. */
export function createDocument(operations: readonly DescribedOperation[], api: DocumentedApi): Json {
  const paths: Record<string, Json> = { ...PROBES, ...api.paths };
  for (const each of operations)
    paths[each.path] = { ...paths[each.path], [each.method.toLowerCase()]: describe(each, api) };
  return {
    openapi: '3.1.0',
    info: { title: api.title, version, description: api.description },
    servers: [{ url: '/' }],
    tags: [...new Set(operations.map(({ tag }) => tag))].map((name) => ({ name })),
    paths,
    components: {
      securitySchemes: api.securitySchemes,
      schemas: { Problem: schemaOf(problem, 'output') },
      headers: { ...FIELDS, ...api.fields },
    },
  };
}

function describe(each: DescribedOperation, { security }: DocumentedApi): Json {
  const { id, tag, summary, description, role, query, headers, body, answer, mediaType = 'application/json' } = each;
  const text = [description, role === 'none' || role === 'key' ? undefined : `Role: ${role}.`]
    .filter(Boolean)
    .join(' ');
  return {
    operationId: id,
    tags: [tag],
    summary,
    ...(text === '' ? {} : { description: text }),
    security: role === 'none' ? [] : security,
    parameters: [...parametersIn('query', query), ...parametersIn('header', headers)],
    ...(body === undefined
      ? {}
      : { requestBody: { required: true, content: { 'application/json': { schema: schemaOf(body, 'input') } } } }),
    responses: {
      200: {
        description: 'Done',
        headers: fieldsOf(each, 200),
        content: { [mediaType]: { schema: schemaOf(answer, 'output') } },
      },
      ...Object.fromEntries(
        statusesOf(each).map((status) => [status, { ...errorOf(status), headers: fieldsOf(each, status) }]),
      ),
    },
  };
}

function parametersIn(place: 'query' | 'header', parameters: z.ZodObject | undefined): Json[] {
  if (parameters === undefined) return [];
  const { properties = {}, required = [] } = schemaOf(parameters, 'input') as ObjectSchema;
  return Object.entries(properties).map(([name, { description, ...schema }]) => ({
    name,
    in: place,
    required: required.includes(name),
    ...(description === undefined ? {} : { description }),
    ...(schema.type === 'array' ? { style: 'form', explode: false } : {}),
    schema,
  }));
}

/** The header fields of an answer with this status that a client reads. */
function fieldsOf({ etagOn = [], fieldsOn = {} }: DescribedOperation, status: number): Json {
  const names = ['x-request-id', ...(fieldsOn[status] ?? [])];
  if (etagOn.includes(status)) names.push('etag');
  // The gateway answers 503 if it lacks room or its store for now.
  if (status === 429 || status === 503) names.push('retry-after');
  if (status === 401) names.push('www-authenticate');
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

interface ObjectSchema {
  readonly properties?: Readonly<Record<string, Json>>;
  readonly required?: readonly string[];
}

/** The statuses of an operation's errors. */
function statusesOf({ role, query, body, errors = [] }: DescribedOperation): number[] {
  return [
    ...new Set<number>([
      ...(role === 'none' ? [] : [401]),
      // Of a token too many failures, the name of the host, and the role; of a key too many requests at a time.
      ...(role === 'key' ? [503] : role === 'none' ? [403] : [403, 429]),
      ...(query === undefined && body === undefined ? [] : [400, 422]),
      ...(body === undefined ? [] : [413, 415]),
      500,
      ...errors,
    ]),
  ].sort((a, b) => a - b);
}

export function errorOf(status: number): Json {
  const { title } = createProblem<Record<number, string>>(status, '');
  return { description: title, content: { 'application/json': { schema: ERROR } } };
}

function schemaOf(schema: z.ZodType, io: 'input' | 'output'): Json {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io });
  return rest;
}

const STATUS = { type: 'object', properties: { status: { type: 'string' } }, required: ['status'] };
const JSON_STATUS = { 'application/json': { schema: STATUS } };
const NOT_READY = { 503: { description: 'It starts, or drains', content: JSON_STATUS } };

/** An answer that needs no token and no key. */
export function probe(operationId: string, summary: string, content: Json, others: Json = {}): Json {
  return {
    get: { operationId, summary, security: [], responses: { 200: { description: 'Done', content }, ...others } },
  };
}

/** The answers of every listener beside its operations. */
const PROBES: Record<string, Json> = {
  '/livez': probe('getLiveness', 'Whether the process lives', JSON_STATUS),
  '/readyz': probe('getReadiness', 'Whether the process is ready to serve', JSON_STATUS, NOT_READY),
  '/healthz': probe('getHealth', 'The same as `/readyz`', JSON_STATUS, NOT_READY),
};
