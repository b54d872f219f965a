import type { IncomingMessage } from 'node:http';
import { isBodyError } from 'headgate/http';
import { createQueryField, fieldValues, namedByConnection } from 'headgate/internal';
import type { AccountSource } from '../config/account-source.ts';
import { type Refusal, refuse } from '../exchange/refusal.ts';
import type { RouteMatch } from './routes.ts';
import type { Target } from './target.ts';

/**
 * The decoded account id of a request, or a refusal if it is missing, empty or given more than once (422).
 * Undefined if no part of the head has to name it.
 */
export function readAccount(
  request: IncomingMessage,
  target: Target,
  { route: { source }, parameters }: RouteMatch,
): string | Refusal | undefined {
  switch (source?.place) {
    case 'path':
      // A match sets all parameters of the route, and none is empty.
      return parameters.get(source.name);
    case 'query':
      return readQuery(source, target.query ?? '');
    case 'header':
      return readHeader(source, request);
    default:
      return undefined;
  }
}

/** A name that is the same to every server. */
const PLAIN_NAME = /^[a-z0-9_]+$/;
/** Pairs that every server reads in the same way: names as above, and values without escapes. */
const PLAIN_QUERY = /^[a-z0-9_]+=[\w.~-]*(?:&[a-z0-9_]+=[\w.~-]*)*$/;
/** So short that it has fewer pairs than the parser of forms allows, and shorter values. */
const MAX_PLAIN_LENGTH = 1_024;

/**
 * The value of the field in a query that is so plain that nothing about it can be ambiguous: most are, and the parser of
 * forms costs ten times as much. Undefined if the parser has to decide.
 */
export function plainValue(name: string, query: string): string | undefined {
  if (query.length > MAX_PLAIN_LENGTH || !(PLAIN_NAME.test(name) && PLAIN_QUERY.test(query))) return undefined;
  const pair = `&${name}=`;
  const text = `&${query}`;
  const at = text.indexOf(pair);
  if (at === -1 || text.indexOf(pair, at + 1) !== -1) return undefined;
  const from = at + pair.length;
  const end = text.indexOf('&', from);
  return text.slice(from, end === -1 ? text.length : end) || undefined;
}

/** Uses the rules of a form body: a name that some server would take for the account's is refused. */
function readQuery({ name }: AccountSource, query: string): string | Refusal {
  const plain = plainValue(name, query);
  if (plain !== undefined) return plain;
  const field = createQueryField(name, query.length);
  // Given only the query, `URLSearchParams` and others drop a question mark at its beginning.
  const pairs = query.startsWith('?') ? query.slice(1) : query;
  try {
    field.write(Buffer.from(pairs, 'latin1'));
    return field.end();
  } catch (error) {
    if (isBodyError(error)) return unprocessable(error.message);
    throw error;
  }
}

function readHeader({ name }: AccountSource, request: IncomingMessage): string | Refusal {
  if (isHidden(name, request)) {
    const detail = `The header ${name} must not be named in Connection, or be given in another spelling as well.`;
    return refuse(400, 'errors/malformed_request', detail);
  }
  const [account, ...more] = fieldValues(request.rawHeaders, name);
  if (account === undefined) return unprocessable(`The account is missing: send it in the header ${name}.`);
  if (more.length > 0) return unprocessable(`The account is given more than once in the header ${name}.`);
  return account === '' ? unprocessable(`The account in the header ${name} is empty.`) : decodeUtf8(account);
}

/**
 * Whether the upstream could see another account than the gateway. A header that Connection names is not forwarded.
 * Many servers take a header that is written with underscores for the same header.
 */
function isHidden(name: string, { headers, rawHeaders }: IncomingMessage): boolean {
  const isSimilar = (other: string) => other !== name && other.replaceAll('_', '-') === name.replaceAll('_', '-');
  return Object.keys(headers).some(isSimilar) || namedByConnection(rawHeaders).has(name);
}

/** Node reads header bytes as Latin-1, and clients send UTF-8. */
function decodeUtf8(value: string): string {
  return /^[\x20-\x7e]*$/.test(value) ? value : Buffer.from(value, 'latin1').toString('utf8');
}

function unprocessable(detail: string): Refusal {
  return refuse(422, 'errors/unprocessable_entity', detail);
}
