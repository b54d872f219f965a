import { fieldValues, type RawFields } from './raw-fields.ts';

/** Fields of one connection, not of the message (RFC 9110, section 7.6.1). Never forwarded, in either direction. */
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authentication-info',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

const NONE: ReadonlySet<string> = new Set();

/** @param name in lower case */
export function isHopByHop(name: string): boolean {
  return HOP_BY_HOP.has(name);
}

/**
 * The names, in lower case, of the fields that the message's own `Connection` makes hop-by-hop. The fields that frame
 * and describe the body cannot be removed in this way, because the body was judged by them.
 */
export function namedByConnection(raw: RawFields): ReadonlySet<string> {
  const values = fieldValues(raw, 'connection');
  if (values.length === 0) return NONE;
  const named = new Set<string>();
  for (const value of values) {
    for (const token of value.split(',')) named.add(token.trim().toLowerCase());
  }
  for (const name of ['content-length', 'content-type', 'content-encoding']) named.delete(name);
  return named;
}
