import { createProblem } from 'headgate/http';
import { z } from 'zod';
import { version } from '../operations/version.ts';
import type { Operation } from './operation.ts';
import { problem } from './schemas.ts';

type Json = Record<string, unknown>;

const DESCRIPTION =
  'Shows and changes what a running gateway does. Every request needs a token of `admin.tokens` in its config. Moments are in ISO 8601 and UTC; spans have their unit in their names.';

const ERROR = { $ref: '#/components/schemas/Problem' };

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
    },
  };
}

function describe(each: Operation): Json {
  const { id, tag, summary, description, role, query, body, answer, mediaType = 'application/json' } = each;
  const { properties = {}, required = [] } = query === undefined ? {} : (schemaOf(query, 'input') as ObjectSchema);
  return {
    operationId: id,
    tags: [tag],
    summary,
    ...(description === undefined && role === 'none'
      ? {}
      : { description: [description, role === 'none' ? undefined : `Role: ${role}.`].filter(Boolean).join(' ') }),
    security: role === 'none' ? [] : [{ token: [] }],
    parameters: Object.entries(properties).map(([name, { description, ...schema }]) => ({
      name,
      in: 'query',
      required: required.includes(name),
      ...(description === undefined ? {} : { description }),
      ...(schema.type === 'array' ? { style: 'form', explode: false } : {}),
      schema,
    })),
    ...(body === undefined
      ? {}
      : { requestBody: { required: true, content: { 'application/json': { schema: schemaOf(body, 'input') } } } }),
    responses: {
      200: { description: 'Done', content: { [mediaType]: { schema: schemaOf(answer, 'output') } } },
      ...Object.fromEntries(statusesOf(each).map((status) => [status, errorOf(status)])),
    },
  };
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

/** The answers of the listener beside the operations. */
const PROBES: Record<string, Json> = {
  '/livez': probe('getLiveness', 'Whether the process lives', JSON_STATUS),
  '/readyz': probe('getReadiness', 'Whether the process is ready to serve', JSON_STATUS, {
    503: { description: 'It starts, or drains', content: JSON_STATUS },
  }),
  '/metrics': probe('getMetrics', 'The metrics for Prometheus', { 'text/plain': { schema: { type: 'string' } } }),
};
