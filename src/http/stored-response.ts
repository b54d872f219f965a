import type { KeptResult } from '../core/claim.ts';
import { checkResponse } from './checked-response.ts';
import { isHopByHop, namedByConnection } from './hop-by-hop.ts';
import { decodeUtf8 } from './parse/utf8.ts';
import { base64, fromBase64 } from './platform.ts';
import { forEachField, type RawFields } from './raw-fields.ts';

/** A response as it is stored for replays (I4). */
export interface StoredResponse {
  readonly status: number;
  /** The fields that {@link storedFields} selected. */
  readonly fields: RawFields;
  readonly body: Uint8Array;
}

/** A response for {@link storedResponse}. */
export interface ResponseToStore {
  /** HTTP status, from 200 to 599. */
  readonly status: number;
  /**
   * By name; a list if the field occurs more than once. Fields that are never stored are left out (I4).
   * @default no fields
   */
  readonly headers?: Readonly<Record<string, string | readonly string[]>> | undefined;
  /**
   * Text is encoded as UTF-8. Must be empty if the status is 204, 205 or 304.
   * @default empty
   */
  readonly body?: string | Uint8Array | undefined;
}

/** Fields of one moment or of one session. Like hop-by-hop fields, they are never stored and never replayed (I4). */
const NEVER_STORED: ReadonlySet<string> = new Set([
  'set-cookie',
  'date',
  'content-length',
  'retry-after',
  'x-request-id',
  'idempotency-replayed',
  'idempotency-status',
]);

const VERSION = 1;

/** Whether a field of a response is stored. `name` is in lower case. */
export type KeepField = (name: string) => boolean;

/** Stores every field that does not belong to one moment, one connection or one session. */
export const keepsField: KeepField = (name) =>
  !NEVER_STORED.has(name) && !isHopByHop(name) && !/^(x-)?ratelimit(-|$)/.test(name);

/**
 * Selects the fields that are stored.
 * @param keeps may exclude more fields; it cannot include a field that is never stored
 */
export function storedFields(fields: RawFields, keeps: KeepField = keepsField): string[] {
  const named = namedByConnection(fields);
  const stored: string[] = [];
  forEachField(fields, (name, value, lowerName) => {
    if (keepsField(lowerName) && !named.has(lowerName) && keeps(lowerName)) stored.push(name, value);
  });
  return stored;
}

/** Writes a response as text for a store. A body that is UTF-8 stays text; any other body is written in base64. */
export function encodeResponse({ status, fields, body }: StoredResponse): string {
  const head = JSON.stringify([VERSION, status, fields]);
  const text = decodeUtf8(body);
  return text === undefined ? `${head}\nb${base64(body)}` : `${head}\nt${text}`;
}

/**
 * Writes a response as a gate stores it under an idempotency key. Return it as the `result` of a request's `reconcile`
 * callback, or pass it to `completeWith` of `createIdempotency`: every retry gets this response (I9).
 * @throws OptionError
 * @example
 * ```ts
 * reconcile: async ({ key, signal }) => {
 *   const mail = await provider.find(key, { signal });
 *   if (mail === undefined) return 'unknown';
 *   const headers = { 'content-type': 'application/json' };
 *   return { done: true, result: storedResponse({ status: 201, headers, body: JSON.stringify(mail) }) };
 * },
 * ```
 */
export function storedResponse(response: ResponseToStore): KeptResult {
  const { status, fields, body } = checkResponse(response, 'response');
  return { status: String(status), value: encodeResponse({ status, fields: storedFields(fields), body }) };
}

/** Returns undefined if `value` was not written by {@link encodeResponse}. */
export function decodeResponse(value: string): StoredResponse | undefined {
  const end = value.indexOf('\n');
  const encoding = value[end + 1];
  try {
    const [version, status, fields] = JSON.parse(value.slice(0, end)) as [unknown, unknown, unknown];
    if (version !== VERSION || !isStatus(status) || !isFields(fields)) return undefined;
    const rest = value.slice(end + 2);
    if (encoding === 't') return { status, fields, body: new TextEncoder().encode(rest) };
    const body = encoding === 'b' ? fromBase64(rest) : undefined;
    return body && { status, fields, body };
  } catch {
    return undefined;
  }
}

function isStatus(value: unknown): value is number {
  return Number.isInteger(value) && Number(value) >= 200 && Number(value) <= 999;
}

function isFields(value: unknown): value is string[] {
  return Array.isArray(value) && value.length % 2 === 0 && value.every((part) => typeof part === 'string');
}
