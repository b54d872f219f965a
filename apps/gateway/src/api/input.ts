import type { IncomingMessage } from 'node:http';
import { isHeadgateError } from 'headgate';
import { decodeUtf8, fieldValues, parseMediaType, tooLarge } from 'headgate/internal';
import { z } from 'zod';
import { checkJson } from '../config/check-json.ts';
import type { ConfigIssue } from '../config/config-error.ts';
import { readJson } from '../config/json.ts';
import { isRefusal, type Refusal, refuse, refuseBody, refuseForNow } from '../exchange/refusal.ts';

/** Largest body, in bytes. */
export const MAX_BODY_BYTES = 65_536;

const NOTHING = z.strictObject({});

/** A value of the request is wrong, which is a 422. */
export class InputError extends Error {
  constructor(readonly issues: readonly ConfigIssue[]) {
    super(textOf(issues));
    this.name = 'InputError';
  }
}

/** The 503 of such an error. */
export const OUTAGE = refuseForNow('The store did not answer in time. A command that is late may still be executed.');

/** Whether an error means that the store did not answer, or has no room. */
export function isOutage(error: unknown): boolean {
  return (['store_timeout', 'store_unavailable', 'store_full', 'result_unavailable'] as const).some((code) =>
    isHeadgateError(error, code),
  );
}

/** The 422 that names each place with its fault. */
export function refuseInput({ message }: InputError): Refusal {
  return refuse(422, 'errors/unprocessable_entity', message);
}

/**
 * Reads the parameters of a query.
 * @param query raw, without its question mark
 */
export function readQuery(schema: z.ZodObject | undefined, query: string | undefined): unknown {
  if (query !== undefined && !isDecodable(query))
    return refuse(400, 'errors/malformed_request', 'The query has a malformed percent-encoding.');
  const types = schema === undefined ? {} : typesOf(schema);
  const values = new Map<string, unknown>();
  for (const [name, text] of new URLSearchParams(query)) {
    if (values.has(name)) return refuseInput(new InputError([{ path: name, reason: 'is given more than once' }]));
    values.set(name, jsonOf(text, types[name]));
  }
  return checked(schema ?? NOTHING, Object.fromEntries(values));
}

/** Reads the header fields that an operation names, and no other. */
export function readHeaders(schema: z.ZodObject = NOTHING, { headers }: IncomingMessage): unknown {
  const given = Object.keys(schema.shape).map((name) => [name, headers[name.toLowerCase()]]);
  const result = checkJson(schema, Object.fromEntries(given));
  if ('value' in result) return result.value;
  // The path of a name with a hyphen is written as an index.
  const issues = result.issues.map(({ path, reason }) => ({ path: path.replace(/^\["(.*)"\]$/, '$1'), reason }));
  return refuseInput(new InputError(issues));
}

/** Bounds of a body. */
export interface BodyBounds {
  /** In bytes. */
  readonly maxBytes: number;
  /** Counts bytes that are buffered. Returns false if there is no room for them. */
  readonly add: (bytes: number) => boolean;
}

const BOUNDS: BodyBounds = { maxBytes: MAX_BODY_BYTES, add: () => true };

/** Reads the body, which must be JSON. Reads nothing if the operation takes no body. */
export async function readBody(
  schema: z.ZodObject | undefined,
  request: IncomingMessage,
  bounds = BOUNDS,
): Promise<unknown> {
  if (schema === undefined) return undefined;
  const [type = '', another] = fieldValues(request.rawHeaders, 'content-type');
  if (another !== undefined || parseMediaType(type)?.essence !== 'application/json')
    return refuse(415, 'errors/unsupported_media_type', 'The body must be JSON: send content-type: application/json.');
  const bytes = await bytesOf(request, bounds);
  if (isRefusal(bytes)) return bytes;
  const text = decodeUtf8(bytes);
  const json = text === undefined ? { issue: { path: '', reason: 'not UTF-8' } } : readJson(text);
  if ('issue' in json) return refuse(400, 'errors/malformed_request', `The body is not valid: ${json.issue.reason}.`);
  return checked(schema, json.value);
}

function checked(schema: z.ZodObject, input: unknown): unknown {
  const result = checkJson(schema, input);
  return 'value' in result ? result.value : refuseInput(new InputError(result.issues));
}

function textOf(issues: readonly ConfigIssue[]): string {
  return issues.map(({ path, reason }) => (path === '' ? reason : `${path}: ${reason}`)).join('; ');
}

/** The JSON types of the parameters, by name. */
const knownTypes = new WeakMap<z.ZodObject, Readonly<Record<string, string | undefined>>>();

function typesOf(schema: z.ZodObject): Readonly<Record<string, string | undefined>> {
  const known = knownTypes.get(schema);
  if (known !== undefined) return known;
  const { properties = {} } = z.toJSONSchema(schema, { io: 'input' });
  const found = Object.fromEntries(
    Object.entries(properties).map(([name, property]) => [
      name,
      typeof property === 'object' ? String(property.type) : undefined,
    ]),
  );
  knownTypes.set(schema, found);
  return found;
}

/** A parameter as a JSON value. A value of another type stays a text, and the schema reports it. */
function jsonOf(text: string, type: string | undefined): unknown {
  if ((type === 'integer' || type === 'number') && /^-?\d{1,16}(?:\.\d{1,16})?$/.test(text)) return Number(text);
  if (type === 'boolean' && (text === 'true' || text === 'false')) return text === 'true';
  return type === 'array' ? text.split(',') : text;
}

function isDecodable(query: string): boolean {
  try {
    decodeURIComponent(query);
    return true;
  } catch {
    return false;
  }
}

const NO_ROOM = refuseForNow('Too many bytes of bodies are buffered; nothing was done. Retry later.');

async function bytesOf(request: IncomingMessage, { maxBytes, add }: BodyBounds): Promise<Buffer | Refusal> {
  if (Number(request.headers['content-length'] ?? 0) > maxBytes) return refuseBody(tooLarge(maxBytes));
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    // The request is answered on its connection, so it must not be destroyed.
    for await (const chunk of request.iterator({ destroyOnReturn: false })) {
      size += (chunk as Buffer).length;
      if (size > maxBytes) return refuseBody(tooLarge(maxBytes));
      if (!add((chunk as Buffer).length)) return NO_ROOM;
      chunks.push(chunk as Buffer);
    }
  } catch {
    return refuse(400, 'errors/malformed_request', 'The body broke off.');
  }
  return Buffer.concat(chunks);
}
