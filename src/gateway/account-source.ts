import type { IncomingMessage } from 'node:http';
import { isHopByHop } from '../http/hop-by-hop.ts';
import { type Refusal, refuse } from './refusal.ts';
import type { RouteMatch } from './routes.ts';
import type { Target } from './target.ts';

/** Where a route's account stands in a request. */
export interface AccountSource {
  readonly place: 'path' | 'query' | 'header' | 'body';
  /** Of the parameter; a header's in lower case. */
  readonly name: string;
}

export const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** Reads `path.NAME`, `query.NAME`, `header.NAME` or `body.NAME`, checked before. */
export function parseSource(text: string): AccountSource {
  const dot = text.indexOf('.');
  const place = text.slice(0, dot) as AccountSource['place'];
  const name = text.slice(dot + 1);
  return { place, name: place === 'header' ? name.toLowerCase() : name };
}

/** Headers that never reach the upstream, or that everybody sends: an account there would be charged for another request than is done. */
export function isForbiddenAccountHeader(name: string): boolean {
  const lower = name.toLowerCase();
  return isHopByHop(lower) || ['x-api-key', 'host', 'content-length', 'expect', 'x-request-id'].includes(lower);
}

/** The account's id where it stands in the head, decoded; given once and not empty, else 422. */
export function readAccount(
  source: HeadSource,
  request: IncomingMessage,
  target: Target,
  match: RouteMatch,
): string | Refusal {
  if (source.place === 'header' && isHidden(source.name, request)) {
    return refuse(
      400,
      'errors/malformed_request',
      `The header ${source.name} must reach the upstream as it was judged.`,
    );
  }
  const values = valuesOf(source, request, target, match);
  const [account] = values;
  const place = `${source.place === 'path' ? 'path parameter' : source.place} ${source.name}`;
  if (account === undefined) return unprocessable(`The account is missing: give it in the ${place}.`);
  if (values.length > 1) return unprocessable(`The account is given more than once in the ${place}.`);
  if (account === null) return unprocessable(`The ${place} has a malformed percent-encoding.`);
  return account === '' ? unprocessable(`The account in the ${place} is empty.`) : account;
}

/** A source that is read without the body. */
export type HeadSource = AccountSource & { readonly place: 'path' | 'query' | 'header' };

/** Null stands for a value that cannot be decoded. */
function valuesOf(
  { place, name }: HeadSource,
  request: IncomingMessage,
  target: Target,
  match: RouteMatch,
): (string | null)[] {
  switch (place) {
    case 'path':
      return [match.parameters.get(name) ?? ''];
    case 'query':
      return queryValues(target.query ?? '', name);
    case 'header':
      return headerValues(request.rawHeaders, name);
  }
}

/** Every value of a name in a query string; names are decoded too, so that `%61ccount` is no second account. */
export function queryValues(query: string, name: string): (string | null)[] {
  const values: (string | null)[] = [];
  for (const pair of query.split('&')) {
    const equals = pair.indexOf('=');
    const decodedName = decode(equals === -1 ? pair : pair.slice(0, equals));
    if (pair !== '' && decodedName === name) values.push(equals === -1 ? '' : decode(pair.slice(equals + 1)));
  }
  return values;
}

/**
 * Whether the upstream would see another account than was judged: the header named in Connection is taken off on the way, and one spelt with
 * underscores is the same header to many servers.
 */
function isHidden(name: string, { headers }: IncomingMessage): boolean {
  const connection = (headers.connection ?? '').toLowerCase().split(',');
  const alike = Object.keys(headers).some(
    (other) => other !== name && other.replaceAll('_', '-') === name.replaceAll('_', '-'),
  );
  return alike || connection.some((token) => token.trim() === name);
}

/** From the raw list: Node joins most headers that come twice, and drops others. */
function headerValues(rawHeaders: readonly string[], name: string): string[] {
  const values: string[] = [];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if (rawHeaders[i]?.toLowerCase() === name) values.push(utf8(rawHeaders[i + 1] ?? ''));
  }
  return values;
}

/** Node gives header bytes as Latin-1; clients send UTF-8. */
function utf8(value: string): string {
  return /^[\x20-\x7e]*$/.test(value) ? value : Buffer.from(value, 'latin1').toString('utf8');
}

function decode(text: string): string | null {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return null;
  }
}

function unprocessable(detail: string): Refusal {
  return refuse(422, 'errors/unprocessable_entity', detail);
}
