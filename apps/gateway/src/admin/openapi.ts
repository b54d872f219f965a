import { createProblem } from 'headgate/http';
import { z } from 'zod';
import { version } from '../operations/version.ts';
import type { Operation } from './operation.ts';
import { problem } from './schemas.ts';

type Json = Record<string, unknown>;

const DESCRIPTION =
  'Shows and changes what a running gateway does. Every request needs a token of `admin.tokens` in its config. Moments are in ISO 8601 and UTC; spans have their unit in their names.';

const ERROR = { $ref: '#/components/schemas/Problem' };

/** The header fields of answers. */
const FIELDS = {
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
export function createDocument(operations: readonly Operation[]): Json {
  const paths: Record<string, Json> = { ...PROBES };
  for (const each of operations)
    paths[each.path] = { ...paths[each.path], [each.method.toLowerCase()]: describe(each) };
  return {
    openapi: '3.1.0',
    info: { title: 'headgate Admin API', version, description: DESCRIPTION },
    servers: [{ url: '/' }],
    tags: [...new Set(operations.map(({ tag }) => tag))].map((name) => ({ name })),
    paths,
    components: {
      securitySchemes: { token: { type: 'http', scheme: 'bearer' } },
      schemas: { Problem: schemaOf(problem, 'output') },
      headers: FIELDS,
    },
  };
}

function describe(each: Operation): Json {
  const { id, tag, summary, description, role, query, headers, body, answer, mediaType = 'application/json' } = each;
  return {
    operationId: id,
    tags: [tag],
    summary,
    ...(description === undefined && role === 'none'
      ? {}
      : { description: [description, role === 'none' ? undefined : `Role: ${role}.`].filter(Boolean).join(' ') }),
    security: role === 'none' ? [] : [{ token: [] }],
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
function fieldsOf({ etagOn = [] }: Operation, status: number): Json {
  const names: (keyof typeof FIELDS)[] = ['x-request-id'];
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
function statusesOf({ role, query, body, errors = [] }: Operation): number[] {
  return [
    ...new Set<number>([
      ...(role === 'none' ? [] : [401, 429]),
      // The name of the host, and the role.
      403,
      ...(query === undefined && body === undefined ? [] : [400, 422]),
      ...(body === undefined ? [] : [413, 415]),
      500,
      ...errors,
    ]),
  ].sort((a, b) => a - b);
}

function errorOf(status: number): Json {
  const { title } = createProblem<Record<number, string>>(status, '');
  return { description: title, content: { 'application/json': { schema: ERROR } } };
}

function schemaOf(schema: z.ZodType, io: 'input' | 'output'): Json {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io });
  return rest;
}

const STATUS = { type: 'object', properties: { status: { type: 'string' } }, required: ['status'] };
const probe = (operationId: string, summary: string, content: Json, others: Json = {}): Json => ({
  get: { operationId, summary, security: [], responses: { 200: { description: 'Done', content }, ...others } },
});
const JSON_STATUS = { 'application/json': { schema: STATUS } };
const NOT_READY = { 503: { description: 'It starts, or drains', content: JSON_STATUS } };

/** The answers of the listener beside the operations. */
const PROBES: Record<string, Json> = {
  '/livez': probe('getLiveness', 'Whether the process lives', JSON_STATUS),
  '/readyz': probe('getReadiness', 'Whether the process is ready to serve', JSON_STATUS, NOT_READY),
  '/healthz': probe('getHealth', 'The same as `/readyz`', JSON_STATUS, NOT_READY),
  '/metrics': probe(
    'getMetrics',
    'The metrics for Prometheus',
    { 'text/plain': { schema: { type: 'string' } } },
    { 500: errorOf(500) },
  ),
};
