import { isHopByHop, namedByConnection } from '../../http/hop-by-hop.ts';
import type { HeaderFields } from '../../http/rate-limit-fields.ts';
import type { Exchange } from '../exchange/exchange.ts';

const OURS_TO_SAY: ReadonlySet<string> = new Set(['x-api-key', 'host', 'expect', 'x-request-id']);
/** Of an outcome that was kept, or not; ours alone on every route, since a client takes such an answer for final. */
const MARKS: ReadonlySet<string> = new Set(['idempotency-replayed', 'idempotency-status']);
const FORWARDED = ['x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto'] as const;
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** What a field value may hold as Latin-1 (RFC 9110, section 5.5). */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/**
 * Header fields of the forwarded request, names and values in one flat list, in the order in which they came; less the hop-by-hop
 * ones and `X-API-KEY`. `x-forwarded-*` has what came with the request, and behind it what we know.
 */
export function requestFields({ request, id, idempotent }: Exchange): string[] {
  const { rawHeaders, socket } = request;
  const named = namedByConnection(rawHeaders);
  const forwarded = new Map<string, string[]>(FORWARDED.map((name) => [name, []]));
  const fields: string[] = [];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string;
    const value = rawHeaders[i + 1] as string;
    const lower = name.toLowerCase();
    if (isHopByHop(lower) || named.has(lower) || OURS_TO_SAY.has(lower)) continue;
    if (idempotent !== undefined && lower.replaceAll('_', '-') === 'idempotency-key') continue;
    const list = forwarded.get(lower);
    if (list === undefined) fields.push(name, value);
    else if (value !== '') list.push(value);
  }
  const known = [socket.remoteAddress, request.headers.host, 'http'];
  for (const [index, name] of FORWARDED.entries()) {
    const list = forwarded.get(name) ?? [];
    if (known[index]) list.push(known[index]);
    if (list.length > 0) fields.push(name, list.join(', '));
  }
  if (idempotent !== undefined) fields.push('Idempotency-Key', idempotent.forwardedKey);
  fields.push('x-request-id', id);
  return fields;
}

/**
 * Header fields of the upstream's answer as the client gets them: flat, in order, duplicates kept; less the hop-by-hop ones, those that
 * no header can hold, and on a limited route those that are ours to say.
 * @param ours fields of the gate's; none on an unlimited route
 */
export function answerFields(
  raw: readonly string[],
  { id }: Pick<Exchange, 'id'>,
  ours: HeaderFields,
  isLimited: boolean,
): string[] {
  const named = namedByConnection(raw);
  const fields: string[] = [];
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i] as string;
    const value = raw[i + 1] as string;
    const lower = name.toLowerCase();
    if (isHopByHop(lower) || named.has(lower) || lower === 'x-request-id' || MARKS.has(lower)) continue;
    if (isLimited && (lower.startsWith('x-ratelimit-') || Object.hasOwn(ours, lower))) continue;
    if (TOKEN.test(name) && VALUE.test(value)) fields.push(name, value);
  }
  for (const name in ours) fields.push(name, ours[name] as string);
  fields.push('x-request-id', id);
  return fields;
}
