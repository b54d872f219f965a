import { isOwnField } from './request-fields.ts';

/** What a route can count by without any name in the request. */
export const CONSUMERS = ['key', 'application', 'address'] as const;

/** The API key that was used, its application, or the address of the client. */
export type Consumer = (typeof CONSUMERS)[number];

/** The part of a request that names its account, or the consumer that is its account. */
export interface AccountSource {
  readonly place: 'path' | 'query' | 'header' | 'body' | Consumer;
  /** Name of the parameter, header or field; of a header in lower case. Empty for a consumer. */
  readonly name: string;
}

/** `account` of a route that is not limited. */
export const NO_ACCOUNT = 'none';
export const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

export function isConsumer(text: string | undefined): text is Consumer {
  return (CONSUMERS as readonly (string | undefined)[]).includes(text);
}

/** Whether requests of a route are limited, as its `account` says. */
export function isLimited({ account = NO_ACCOUNT }: { readonly account?: string | undefined }): boolean {
  return account !== NO_ACCOUNT;
}

/** Whether a request of the route must name its account. */
export function isNamed(route: { readonly account?: string | undefined }): boolean {
  return isLimited(route) && !isConsumer(route.account);
}

/** The id of a consumer's account. No account of a config has such an id, so the two never share a count. */
export function consumerId(consumer: Consumer, name: string): string {
  return `${consumer}:${name}`;
}

/** The consumer or the group with this id; undefined for an account of a config. */
export function consumerOf(id: string): { readonly consumer: Consumer | 'group'; readonly name: string } | undefined {
  const colon = id.indexOf(':');
  const consumer = colon === -1 ? undefined : id.slice(0, colon);
  return consumer === 'group' || isConsumer(consumer) ? { consumer, name: id.slice(colon + 1) } : undefined;
}

/** Whether requests of a route can count for the account with this id. */
export function countsFor(route: { readonly account?: string | undefined }, id: string): boolean {
  const consumer = consumerOf(id)?.consumer;
  // A key or an account of any of its requests may be in the group.
  if (consumer === 'group') return isLimited(route);
  return consumer === undefined ? isNamed(route) : route.account === consumer;
}

/**
 * Reads `key`, `application`, `address`, `path.NAME`, `query.NAME`, `header.NAME` or `body.NAME`; the schema has checked
 * this form. Undefined if the route is not limited.
 */
export function parseAccountSource(text = NO_ACCOUNT): AccountSource | undefined {
  if (text === NO_ACCOUNT) return undefined;
  if (isConsumer(text)) return { place: text, name: '' };
  const dot = text.indexOf('.');
  const place = text.slice(0, dot) as AccountSource['place'];
  const name = text.slice(dot + 1);
  return { place, name: place === 'header' ? name.toLowerCase() : name };
}

/**
 * The reason why a route cannot take its account from this source; undefined if it can.
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
