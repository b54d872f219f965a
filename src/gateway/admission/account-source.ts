import type { IncomingMessage } from 'node:http';
import { isBodyError } from '../../http/body-error.ts';
import { FieldValue } from '../../http/field/field-value.ts';
import { FormField } from '../../http/field/form.ts';
import { isHopByHop } from '../../http/hop-by-hop.ts';
import { type Refusal, refuse } from '../exchange/refusal.ts';
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
  { parameters }: { readonly parameters: ReadonlyMap<string, string> },
): string | Refusal {
  const { place, name } = source;
  switch (place) {
    case 'path':
      // The template has it, and none is empty.
      return parameters.get(name) as string;
    case 'query':
      return readQuery(name, target.query ?? '');
    case 'header':
      return readHeader(name, request);
  }
}

/** A source that is read without the body. */
export type HeadSource = AccountSource & { readonly place: 'path' | 'query' | 'header' };

/** By the rules of a form in a body: what some server takes for the account is refused, wherever it stands. */
function readQuery(name: string, query: string): string | Refusal {
  const field = new FormField(new FieldValue(name, query.length, 'query'));
  try {
    field.write(Buffer.from(query, 'latin1'));
    return field.end();
  } catch (error) {
    if (isBodyError(error)) return unprocessable(error.message);
    throw error;
  }
}

function readHeader(name: string, request: IncomingMessage): string | Refusal {
  if (isHidden(name, request))
    return refuse(400, 'errors/malformed_request', `The header ${name} must reach the upstream as it was judged.`);
  const [account, ...more] = headerValues(request.rawHeaders, name);
  if (account === undefined) return unprocessable(`The account is missing: give it in the header ${name}.`);
  if (more.length > 0) return unprocessable(`The account is given more than once in the header ${name}.`);
  return account === '' ? unprocessable(`The account in the header ${name} is empty.`) : account;
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

function unprocessable(detail: string): Refusal {
  return refuse(422, 'errors/unprocessable_entity', detail);
}
