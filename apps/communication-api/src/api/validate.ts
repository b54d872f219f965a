import type { FastifyRequest, FastifySchemaCompiler } from 'fastify';
import type { z } from 'zod';
import { counted } from '../domain/counted.ts';
import type { ErrorTypesByStatus } from '../domain/error-types.ts';
import { isStorable } from '../domain/header-text.ts';
import { ServiceError } from '../domain/service-error.ts';
import { decodeForm, FormFields, formSchemaOf } from './form.ts';

type Issue = z.core.$ZodIssue;

/** The params of a check that sets the error type of its fault. */
interface TypedIssue {
  readonly type?: ErrorTypesByStatus[422];
}

/** The parameters of a custom check whose fault uses its own error type. */
export const typedIssue = (type: ErrorTypesByStatus[422]): { params: TypedIssue } => ({ params: { type } });

/**
 * Validates the parts of a request by their schemas. A form is decoded first. A fault is a 422 that names the field.
 */
export const validatorCompiler: FastifySchemaCompiler<z.ZodType> = ({ schema, httpPart }) => {
  // An id in a path is compared with the form of ids, so a text that cannot be stored is a 404 as any other.
  const mayBeStored = httpPart !== 'params';
  let formSchema: ReturnType<typeof formSchemaOf> | undefined;
  return (data: unknown) => {
    try {
      if (data instanceof FormFields) formSchema ??= formSchemaOf(schema);
      const value = data instanceof FormFields && formSchema !== undefined ? decodeForm(data, formSchema) : data;
      const { success, data: output, error } = schema.safeParse(value);
      if (!success) return { error: errorOf(error.issues) };
      const place = mayBeStored ? unstorableIn(output) : undefined;
      return place === undefined ? { value: output } : { error: unstorable(fieldOf(place)) };
    } catch (error) {
      return { error: error as Error };
    }
  };
};

/** The media types of the bodies that the operation of a request accepts. */
export const acceptedTypes = ({ routeOptions }: FastifyRequest): string =>
  (routeOptions.schema?.consumes ?? ['application/json', 'application/x-www-form-urlencoded']).join(' or ');

/**
 * A hook that refuses a request without the body that its operation needs.
 * @throws ServiceError 422
 */
export async function requireBody(request: FastifyRequest): Promise<void> {
  if (request.body !== undefined || request.routeOptions.schema?.body === undefined) return;
  throw new ServiceError(
    422,
    'errors/unprocessable_entity',
    `The body is missing. Send one with Content-Type: ${acceptedTypes(request)}.`,
  );
}

const unstorable = (field: string): ServiceError =>
  new ServiceError(422, 'errors/unprocessable_entity', `${field}: must not contain NUL or half of a surrogate pair`);

/** The place of the first text, value or name, that cannot be stored. */
function unstorableIn(value: unknown): readonly PropertyKey[] | undefined {
  if (typeof value === 'string') return isStorable(value) ? undefined : [];
  if (typeof value !== 'object' || value === null) return undefined;
  for (const [key, child] of Object.entries(value)) {
    const place = isStorable(key) ? unstorableIn(child) : [];
    if (place !== undefined) return [Array.isArray(value) ? Number(key) : key, ...place];
  }
  return undefined;
}

function errorOf(issues: readonly Issue[]): ServiceError {
  const [issue] = issues.flatMap((each) => deepest(each));
  if (issue === undefined) return new ServiceError(422, 'errors/unprocessable_entity', 'The request is not valid.');
  const type =
    (issue.code === 'custom' ? (issue.params as TypedIssue | undefined)?.type : undefined) ??
    'errors/unprocessable_entity';
  const place = fieldOf(issue.path);
  return new ServiceError(422, type, place === '' ? textOf(issue) : `${place}: ${textOf(issue)}`);
}

/** The issue of the alternative of a union that came closest: the one with the fewest faults. */
function deepest(issue: Issue): readonly Issue[] {
  if (issue.code !== 'invalid_union') return [issue];
  const [closest] = [...issue.errors].filter((issues) => issues.length > 0).sort((a, b) => depth(b) - depth(a));
  if (closest === undefined) return [issue];
  return closest.flatMap((each) => deepest({ ...each, path: [...issue.path, ...each.path] } as Issue));
}

const depth = (issues: readonly Issue[]): number => Math.max(...issues.map(({ path }) => path.length));

/** A given name is part of the message, so it is cut. */
const shown = (name: string): string => JSON.stringify(name.length > 60 ? `${name.slice(0, 60)}…` : name);

function textOf(issue: Issue): string {
  if (issue.code === 'unrecognized_keys') return `unknown field ${issue.keys.slice(0, 5).map(shown).join(', ')}`;
  if (issue.code === 'invalid_type' && issue.input === undefined && /undefined$/.test(issue.message)) return 'required';
  if (issue.code === 'too_small' || issue.code === 'too_big') return sizeText(issue);
  if (issue.code === 'invalid_value') return `must be ${issue.values.map(String).join(' or ')}`;
  return issue.message.replace(/^Invalid input: /, '').replace(/^[A-Z]/, (letter) => letter.toLowerCase());
}

/** What a size counts: one of them, and more. */
const UNITS: Readonly<Record<string, readonly [one: string, many: string]>> = {
  array: ['entry', 'entries'],
  string: ['character', 'characters'],
  object: ['field', 'fields'],
};

/** If a schema gives a size its own text, that text stays. */
function sizeText(issue: z.core.$ZodIssueTooSmall | z.core.$ZodIssueTooBig): string {
  if (!/^Too (?:small|big): /.test(issue.message)) return issue.message;
  const [bound, size] = issue.code === 'too_small' ? ['at least', issue.minimum] : ['at most', issue.maximum];
  const units = UNITS[issue.origin];
  return units === undefined ? `must be ${bound} ${size}` : `must have ${bound} ${counted(size, ...units)}`;
}

/** `to[1].identifier` */
const fieldOf = (path: readonly PropertyKey[]): string =>
  path
    .map((key, index) => {
      if (typeof key === 'number') return `[${key}]`;
      const name = String(key);
      const safe = /^[\w-]{1,60}$/.test(name) ? name : shown(name);
      return index === 0 ? safe : `.${safe}`;
    })
    .join('');
