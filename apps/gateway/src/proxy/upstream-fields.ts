import type { IncomingMessage } from 'node:http';
import type { HeaderFields } from 'headgate/http';
import { isHopByHop, namedByConnection } from 'headgate/internal';
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

const MAX_NAMES = 500;
const MAX_NAME_LENGTH = 64;

/**
 * Remembers what is found out about the name of a field. Most messages use the same few names, and a side that sends
 * others does not make this larger.
 */
function rememberNames<Found>(find: (name: string) => Found): (name: string) => Found {
  const names = new Map<string, Found>();
  return (name) => {
    const known = names.get(name);
    if (known !== undefined) return known;
    const found = find(name);
    if (names.size === MAX_NAMES) names.clear();
    if (name.length <= MAX_NAME_LENGTH) names.set(name, found);
    return found;
  };
}

const isToken = rememberNames((name) => TOKEN.test(name));

/** The treatment of a client's field by its name: `obeyed` is passed only if the config or the route names it. */
type RequestUse = 'dropped' | 'appended' | 'obeyed' | 'passed';

const requestName = rememberNames((name) => {
  const lowerName = name.toLowerCase();
  return { lowerName, use: requestUse(lowerName) };
});

function requestUse(lowerName: string): RequestUse {
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
    if (!isToken(name) || !VALUE.test(value)) return undefined;
    head += `${name}: ${value}\r\n`;
  }
  return `${head}\r\n`;
}

const answerName = rememberNames((name) => {
  const lowerName = name.toLowerCase();
  const isDropped = isHopByHop(lowerName) || lowerName === 'x-request-id' || MARKS.has(lowerName) || !isToken(name);
  return { lowerName, isDropped, isRateLimit: lowerName.startsWith('x-ratelimit-') };
});

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
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = raw[i] as string;
    const value = raw[i + 1] as string;
    const { lowerName, isDropped, isRateLimit } = answerName(name);
    if (isDropped || named.has(lowerName)) continue;
    // A 204 must not state a length (RFC 9110, section 8.6).
    if (status === 204 && lowerName === 'content-length') continue;
    if (isLimited && (isRateLimit || Object.hasOwn(gateFields, lowerName))) continue;
    if (VALUE.test(value)) fields.push(name, value);
  }
  for (const name in gateFields) fields.push(name, gateFields[name] as string);
  fields.push('x-request-id', id);
  return fields;
}
