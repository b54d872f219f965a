import { createProblem, type Problem } from 'headgate/http';
import { z } from 'zod';
import { type ErrorStatus, type ErrorTypesByStatus, errorTypesOf } from '../domain/error-types.ts';
import type { ConnectionParams, ServiceError } from '../domain/service-error.ts';
import { STATUS_TEXT } from './document-text.ts';

export type ServiceProblem = Problem<ErrorTypesByStatus> & { readonly connectionParams?: ConnectionParams };

/** The error object of an error. */
export function problemOf(
  { status, type, message, connectionParams }: ServiceError,
  requestId: string,
): ServiceProblem {
  // ServiceError's constructor checked that the type belongs to the status.
  const problem = createProblem<Record<ErrorStatus, string>>(status, type, message, requestId) as ServiceProblem;
  return connectionParams === undefined ? problem : { ...problem, connectionParams };
}

const connectionParams = z.object({
  imap_host: z.string(),
  imap_port: z.number(),
  imap_user: z.string(),
  smtp_host: z.string(),
  smtp_port: z.number(),
  smtp_user: z.string(),
  imap_encryption: z.string().optional(),
});

const problemSchema = (status: ErrorStatus) =>
  z
    .object({
      title: z.string(),
      detail: z.string().optional(),
      instance: z.string().optional(),
      type: z.enum(errorTypesOf(status) as [string, ...string[]]),
      status: z.literal(status),
      req_id: z.string().optional(),
      ...(status === 401 ? { connectionParams: connectionParams.optional() } : {}),
    })
    .meta({ id: `Problem${status}`, description: STATUS_TEXT[status], examples: [exampleOf(status)] });

function exampleOf(status: ErrorStatus): object {
  const types = errorTypesOf(status);
  const type = types.find((each) => EXAMPLES.has(each)) ?? types[0] ?? '';
  const detail = 'What is wrong, and what would be right.';
  return createProblem<Record<ErrorStatus, string>>(status, type, detail, '0b6f3f0e-8a3c-4a55-9d5e-3f0c1a525f0c');
}

/** The types that a client of this service sees most often. */
const EXAMPLES = new Set<string>([
  'errors/missing_credentials',
  'errors/insufficient_permissions',
  'errors/invalid_resource_identifier',
  'errors/already_used',
  'errors/unprocessable_entity',
  'errors/service_unavailable',
]);

const SCHEMAS = new Map<ErrorStatus, ReturnType<typeof problemSchema>>();

/** The schemas of error answers. A route declares only those that are not common: see `describeRoute` in openapi.ts. */
export function problems(...statuses: readonly ErrorStatus[]): Record<number, ReturnType<typeof problemSchema>> {
  return Object.fromEntries(
    statuses.map((status) => {
      const schema = SCHEMAS.get(status) ?? problemSchema(status);
      SCHEMAS.set(status, schema);
      return [status, schema];
    }),
  );
}
