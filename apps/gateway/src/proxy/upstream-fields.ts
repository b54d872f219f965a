import type { IncomingMessage } from 'node:http';
import { type HeaderFields, NUMBER_FIELD_NAMES, retryAfterMs } from 'headgate/http';
import { forEachField, isHopByHop, namedByConnection } from 'headgate/internal';
import { FORWARDED_FIELDS, isObeyed, NOT_FORWARDED } from '../config/request-fields.ts';
import type { Exchange } from '../exchange/exchange.ts';

/** Only the gateway may send these, on every route: a client takes a response with one of them as final. */
const MARKS: ReadonlySet<string> = new Set(['idempotency-replayed', 'idempotency-status']);
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** Characters that a field value may contain, as Latin-1 (RFC 9110, section 5.5). */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

const KEY_FIELD: readonly string[] = ['x-api-key'];
const KEY_FIELDS: readonly string[] = [...KEY_FIELD, 'authorization'];
const NO_FIELDS: readonly string[] = [];

/** The treatment of a client's field by its name: `obeyed` is passed only if the config or the route names it. */
interface RequestName {
  readonly lowerName: string;
  readonly use: 'dropped' | 'appended' | 'obeyed' | 'passed';
}

/** Most requests use the same few names. A client that sends others does not make this larger. */
const requestNames = new Map<string, RequestName>();
const MAX_NAMES = 500;
const MAX_NAME_LENGTH = 64;

function requestName(name: string): RequestName {
  const known = requestNames.get(name);
  if (known !== undefined) return known;
  const lowerName = name.toLowerCase();
  const found: RequestName = { lowerName, use: useOf(lowerName) };
  if (requestNames.size === MAX_NAMES) requestNames.clear();
  if (name.length <= MAX_NAME_LENGTH) requestNames.set(name, found);
  return found;
}

function useOf(lowerName: string): RequestName['use'] {
  if (isHopByHop(lowerName) || NOT_FORWARDED.has(lowerName)) return 'dropped';
  if ((FORWARDED_FIELDS as readonly string[]).includes(lowerName)) return 'appended';
  return isObeyed(lowerName) ? 'obeyed' : 'passed';
}

function append(list: string | undefined, value: string): string {
  return list === undefined ? value : `${list}, ${value}`;
}

/**
 * Header fields of the forwarded request: names and values in one flat list, in the order of the client's request.
 * Hop-by-hop fields and the API key are removed, and so are fields by which an upstream could take the request for
 * another request. The gateway appends what it knows to `x-forwarded-for`, `-host` and `-proto`.
 * @param listed names in lower case that are forwarded although an upstream may obey them
 */
export function requestFields(exchange: Exchange, listed: ReadonlySet<string>): string[] {
  const { request, id, idempotent, route } = exchange;
  const { rawHeaders, headers, socket } = request;
  const credentials = ownCredentials(exchange);
  const named = namedByConnection(rawHeaders);
  // The upstream must act for the account that was charged.
  const accountField = route?.source?.place === 'header' ? route.source.name : undefined;
  const replaced = idempotent === undefined ? undefined : 'idempotency-key';
  const fields: string[] = [];
  let forwarded: Record<string, string> | undefined;
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string;
    const value = rawHeaders[i + 1] as string;
    const { lowerName, use } = requestName(name);
    if (use === 'dropped' || named.has(lowerName)) continue;
    if (lowerName === replaced || credentials.includes(lowerName)) continue;
    if (use === 'appended') {
      forwarded ??= {};
      if (value !== '') forwarded[lowerName] = append(forwarded[lowerName], value);
    } else if (use === 'passed' || listed.has(lowerName) || lowerName === accountField) fields.push(name, value);
  }
  const values = [socket.remoteAddress, headers.host, 'encrypted' in socket ? 'https' : 'http'];
  addForwarded(fields, forwarded, values);
  if (idempotent !== undefined) fields.push('Idempotency-Key', idempotent.forwardedKey);
  fields.push('x-request-id', id);
  return fields;
}

/** The fields that belong to the gateway, in lower case, and not to the upstream. */
function ownCredentials({ request, route, application }: Exchange): readonly string[] {
  if (application === undefined && route?.isPublic) return NO_FIELDS;
  // Without the first, the API key is in `Authorization`: without any key, the request would not be forwarded.
  return request.headers['x-api-key'] === undefined ? KEY_FIELDS : KEY_FIELD;
}

/** Adds the `x-forwarded-` fields: the client's values, and then the gateway's. */
function addForwarded(
  fields: string[],
  forwarded: Readonly<Record<string, string>> | undefined,
  known: readonly (string | undefined)[],
): void {
  for (let i = 0; i < FORWARDED_FIELDS.length; i++) {
    const name = FORWARDED_FIELDS[i] as string;
    const value = known[i] ? append(forwarded?.[name], known[i] as string) : forwarded?.[name];
    if (value !== undefined) fields.push(name, value);
  }
}

/** Methods whose requests state no length if they are sent without a body (RFC 9110, section 8.6). */
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

/** A method and a target, which contains no blank. */
const METHOD_AND_TARGET = /^[!-~]+ [\x21-\xff]+$/;

/**
 * The head of a request with the empty line at its end. Undefined if it would not be valid HTTP: a line break in a
 * value would make two fields of one.
 */
export function requestHead(methodAndTarget: string, host: string, fields: readonly string[]): string | undefined {
  if (!METHOD_AND_TARGET.test(methodAndTarget)) return undefined;
  let head = `${methodAndTarget} HTTP/1.1\r\nHost: ${host}\r\n`;
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i] as string;
    const value = fields[i + 1] as string;
    if (!TOKEN.test(name) || !VALUE.test(value)) return undefined;
    head += `${name}: ${value}\r\n`;
  }
  return `${head}\r\n`;
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
export function answerFields(
  raw: readonly string[],
  { status, id, gateFields, isLimited }: AnswerFieldsOptions,
): string[] {
  const named = namedByConnection(raw);
  const fields: string[] = [];
  forEachField(raw, (name, value, lowerName) => {
    if (isHopByHop(lowerName) || named.has(lowerName) || lowerName === 'x-request-id' || MARKS.has(lowerName)) return;
    // A 204 must not state a length (RFC 9110, section 8.6).
    if (status === 204 && lowerName === 'content-length') return;
    if (isLimited && (lowerName.startsWith('x-ratelimit-') || Object.hasOwn(gateFields, lowerName))) return;
    if (TOKEN.test(name) && VALUE.test(value)) fields.push(name, value);
  });
  for (const name in gateFields) fields.push(name, gateFields[name] as string);
  fields.push('x-request-id', id);
  return fields;
}

/**
 * The fields of a provider's 429 that its error object keeps: `retry-after` as whole seconds, and what describes the
 * provider's limits under names that no client takes for the gateway's (S16).
 */
export function providerFields(raw: readonly string[]): HeaderFields {
  const fields: Record<string, string> = {};
  const field = fieldReader(raw);
  forEachField(raw, (_name, value, lowerName) => {
    const isOurs = (NUMBER_FIELD_NAMES as readonly string[]).includes(lowerName);
    if (!isOurs && lowerName.includes('ratelimit') && TOKEN.test(lowerName) && VALUE.test(value))
      fields[lowerName] = value;
  });
  const waitMs = retryAfterMs(field, Date.now());
  return waitMs === undefined ? fields : { ...fields, 'retry-after': String(Math.ceil(waitMs / 1_000)) };
}

/** The value of an upstream's field by its name; of a field that comes twice, all values. */
export function fieldReader(raw: readonly string[]): (name: string) => string | undefined {
  return (name) => {
    const values: string[] = [];
    forEachField(raw, (_name, value, lowerName) => {
      if (lowerName === name.toLowerCase()) values.push(value);
    });
    return values.length === 0 ? undefined : values.join(', ');
  };
}
