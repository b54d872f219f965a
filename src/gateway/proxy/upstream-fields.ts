import type { IncomingMessage } from 'node:http';
import { isHopByHop, namedByConnection } from '../../http/hop-by-hop.ts';
import type { HeaderFields } from '../../http/rate-limit-fields.ts';
import { forEachField, type RawFields } from '../../http/raw-fields.ts';
import { FORWARDED_FIELDS, isObeyed, NOT_FORWARDED } from '../config/request-fields.ts';
import type { Exchange } from '../exchange/exchange.ts';

/** Only the gateway may send these, on every route: a client takes a response with one of them as final. */
const MARKS: ReadonlySet<string> = new Set(['idempotency-replayed', 'idempotency-status']);
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** Characters that a field value may have, as Latin-1 (RFC 9110, section 5.5). */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/**
 * Header fields of the forwarded request: names and values in one flat list, in the order of the client's request.
 * Hop-by-hop fields and the API key are removed, and so are fields by which an upstream could take the request for
 * another one. The gateway appends what it knows to `x-forwarded-for`, `-host` and `-proto`.
 * @param listed names in lower case that are forwarded although an upstream may obey them
 */
export function requestFields({ request, id, idempotent, route }: Exchange, listed: ReadonlySet<string>): string[] {
  const { rawHeaders, headers, socket } = request;
  // Then the API key is in `Authorization`: without any key, the request would not be forwarded.
  const isBearer = headers['x-api-key'] === undefined;
  const named = namedByConnection(rawHeaders);
  // The upstream must act for the account that was charged.
  const accountField = route?.source?.place === 'header' ? route.source.name : undefined;
  const forwarded = new Map<string, string[]>(FORWARDED_FIELDS.map((name) => [name, []]));
  const fields: string[] = [];
  forEachField(rawHeaders, (name, value, lowerName) => {
    if (isHopByHop(lowerName) || named.has(lowerName) || NOT_FORWARDED.has(lowerName)) return;
    if (idempotent !== undefined && lowerName === 'idempotency-key') return;
    if (isBearer && lowerName === 'authorization') return;
    const values = forwarded.get(lowerName);
    if (values !== undefined) {
      if (value !== '') values.push(value);
    } else if (!isObeyed(lowerName) || listed.has(lowerName) || lowerName === accountField) fields.push(name, value);
  });
  const known = [socket.remoteAddress, headers.host, 'encrypted' in socket ? 'https' : 'http'];
  for (const [index, name] of FORWARDED_FIELDS.entries()) {
    const values = forwarded.get(name) ?? [];
    if (known[index]) values.push(known[index]);
    if (values.length > 0) fields.push(name, values.join(', '));
  }
  if (idempotent !== undefined) fields.push('Idempotency-Key', idempotent.forwardedKey);
  fields.push('x-request-id', id);
  return fields;
}

/** Methods whose requests state no length if they have no body (RFC 9110, section 8.6). */
const WITHOUT_BODY: ReadonlySet<string> = new Set(['GET', 'HEAD', 'DELETE', 'OPTIONS', 'TRACE']);

/**
 * Fields that say how long the forwarded body is, if no field of the client does, and that the connection is used
 * again. They are always given, because Node would choose by the method.
 */
export function framingFields({ method = '', headers }: IncomingMessage, isWithBody: boolean): string[] {
  const fields = ['Connection', 'keep-alive'];
  if (headers['content-length'] !== undefined) return fields;
  if (isWithBody) fields.push('Transfer-Encoding', 'chunked');
  else if (!WITHOUT_BODY.has(method)) fields.push('Content-Length', '0');
  return fields;
}

/** What {@link answerFields} adds and replaces. */
export interface AnswerFieldsOptions {
  /** Status of the upstream's response. */
  readonly status: number;
  /** Becomes `x-request-id`. */
  readonly id: string;
  /** Fields of the gate, names in lower case. Empty if the route is not limited. */
  readonly gateFields: HeaderFields;
  /** Whether a limit applied to the request. If so, the upstream's rate-limit fields are removed. */
  readonly isLimited: boolean;
}

/**
 * Header fields of the upstream's response as the client gets them: in order, duplicates included. Removed are
 * hop-by-hop fields, fields that are not valid HTTP, and fields that only the gateway may send.
 */
export function answerFields(raw: RawFields, { status, id, gateFields, isLimited }: AnswerFieldsOptions): string[] {
  const named = namedByConnection(raw);
  const fields: string[] = [];
  forEachField(raw, (name, value, lowerName) => {
    if (isHopByHop(lowerName) || named.has(lowerName) || lowerName === 'x-request-id' || MARKS.has(lowerName)) return;
    // A 204 must not have it (RFC 9110, section 8.6).
    if (status === 204 && lowerName === 'content-length') return;
    if (isLimited && (lowerName.startsWith('x-ratelimit-') || Object.hasOwn(gateFields, lowerName))) return;
    if (TOKEN.test(name) && VALUE.test(value)) fields.push(name, value);
  });
  for (const name in gateFields) fields.push(name, gateFields[name] as string);
  fields.push('x-request-id', id);
  return fields;
}
