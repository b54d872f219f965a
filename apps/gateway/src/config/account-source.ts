import { isOwnField } from './request-fields.ts';

/** The part of a request that names its account. */
export interface AccountSource {
  readonly place: 'path' | 'query' | 'header' | 'body';
  /** Name of the parameter, header or field; of a header in lower case. */
  readonly name: string;
}

export const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** Reads `path.NAME`, `query.NAME`, `header.NAME` or `body.NAME`; the schema has checked this form. */
export function parseAccountSource(text: string): AccountSource {
  const dot = text.indexOf('.');
  const place = text.slice(0, dot) as AccountSource['place'];
  const name = text.slice(dot + 1);
  return { place, name: place === 'header' ? name.toLowerCase() : name };
}

/**
 * Why a route cannot take its account from there; undefined if it can.
 * @param parameters names of the route's path parameters
 */
export function unusableSource(text: string, parameters: readonly string[]): string | undefined {
  const name = text.slice(text.indexOf('.') + 1);
  if (text.startsWith('path.') && !parameters.includes(name)) return `the route has no parameter {${name}}`;
  if (!text.startsWith('header.')) return undefined;
  if (!HEADER_NAME.test(name)) return `${JSON.stringify(name)} is not a header name`;
  // The gateway would charge this account, but the upstream would read another account or none.
  return isOwnField(name.toLowerCase()) ? `the header ${name} cannot name an account` : undefined;
}
