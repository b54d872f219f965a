import { describe } from 'headgate/internal';
import { HEADER_NAME } from './account-source.ts';
import { type ConfigIssue, issueIf } from './config-error.ts';
import { arrayOrEmpty, type JsonObject } from './json.ts';

const NO_WILDCARD = 'with credentials, browsers do not accept "*": list the values';
/** Scheme and host, perhaps a port; no path. */
const ORIGIN = /^[a-z][a-z\d+.-]*:\/\/[^\s/?#@\\,*]+$/i;

/** Checks the origins and fields of `cors`. */
export function corsIssues({ origins, headers, exposedHeaders, credentials }: JsonObject): ConfigIssue[] {
  const isEmpty = Array.isArray(origins) && origins.length === 0;
  const lists = { origins, headers, exposedHeaders };
  return [
    ...issueIf('cors.origins', isEmpty ? 'must not be empty: without cors, no origin is allowed' : undefined),
    ...arrayOrEmpty(origins).flatMap((origin, i) => issueIf(`cors.origins[${i}]`, originFlaw(origin))),
    ...arrayOrEmpty(headers).flatMap((name, i) => issueIf(`cors.headers[${i}]`, headerFlaw(name))),
    ...arrayOrEmpty(exposedHeaders).flatMap((name, i) => issueIf(`cors.exposedHeaders[${i}]`, headerFlaw(name))),
    ...Object.entries(lists).flatMap(([list, values]) => {
      const at = credentials === true ? arrayOrEmpty(values).indexOf('*') : -1;
      return issueIf(`cors.${list}[${at}]`, at === -1 ? undefined : NO_WILDCARD);
    }),
  ];
}

/** Browsers compare the field `Origin` with it letter by letter. */
function originFlaw(origin: unknown): string | undefined {
  if (typeof origin !== 'string' || origin === '*') return undefined;
  const expected = 'must be an origin such as "https://app.example.com"';
  if (!ORIGIN.test(origin)) return `${expected}, or "*", got ${describe(origin)}`;
  if (!/^https?:/.test(origin)) return undefined;
  if (!URL.canParse(origin)) return `${expected}, got ${describe(origin)}`;
  const { origin: written } = new URL(origin);
  // An origin contains no password.
  return written === origin
    ? undefined
    : `browsers write it as ${JSON.stringify(written)}, got ${JSON.stringify(origin)}`;
}

function headerFlaw(name: unknown): string | undefined {
  return typeof name !== 'string' || HEADER_NAME.test(name) ? undefined : `${describe(name)} is not a header name`;
}
