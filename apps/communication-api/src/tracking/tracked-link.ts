import { type CustomHeader, headerOf } from '../domain/custom-headers.ts';

/** A link of an email whose clicks are counted. */
export interface TrackedLink {
  /** Its place among the tracked links of the email, from 1. */
  readonly no: number;
  /** Its URL: an absolute http or https URL, in printable ASCII. */
  readonly target: string;
}

/** With its token, a longer link would be cut by some mail clients. */
export const MAX_TARGET = 2_048;
/** A URL that `Location` can carry as it is. */
const PLAIN = /^https?:\/\/[!-~]+$/i;

/** The target of a trackable link. A plain URL stays the same; other URLs are written as a browser writes them. */
export function targetOf(href: string | undefined): string | undefined {
  if (href === undefined || !URL.canParse(href)) return undefined;
  const { protocol, href: written } = new URL(href);
  if (protocol !== 'http:' && protocol !== 'https:') return undefined;
  const target = PLAIN.test(href) ? href : written;
  return target.length > MAX_TARGET ? undefined : target;
}

/** The web links of `List-Unsubscribe`, as `URL` writes them. A mail client must reach them directly. */
export const unsubscribeTargets = (headers: readonly CustomHeader[]): ReadonlySet<string> =>
  new Set(
    [...(headerOf(headers, 'list-unsubscribe') ?? '').matchAll(/<([^<>]*)>/g)]
      .map(([, url = '']) => url)
      .filter((url) => URL.canParse(url))
      .map((url) => new URL(url).href),
  );
