import { readAddressList } from './addresses.ts';
import { headerTextFault } from './header-text.ts';

/** Headers without `X-` that a client may set. */
const ALLOWED = new Set(['list-unsubscribe', 'list-unsubscribe-post', 'reply-to', 'content-type']);
const FORM = /^x-[!-9;-~]+$/i;
/** These change how Gmail and Exchange treat the email. */
const RESERVED = /^x-(?:google-|gm-|ms-|microsoft-)/i;
const BODY_TYPES = ['text/html', 'text/plain'] as const;
/** RFC 5322, section 2.1.1. */
const MAX_LINE = 998;

export type BodyType = (typeof BODY_TYPES)[number];

export interface CustomHeader {
  readonly name: string;
  readonly value: string;
}

/** Why a client may not set this header; undefined if it may. */
export function customHeaderFault({ name, value }: CustomHeader): string | undefined {
  if (!FORM.test(name) && !ALLOWED.has(name.toLowerCase()))
    return 'must begin with X-, or be List-Unsubscribe, List-Unsubscribe-Post, Reply-To or Content-Type';
  if (RESERVED.test(name)) return 'is reserved for the mail provider';
  const fault = headerTextFault(value);
  if (fault !== undefined) return `has a value that cannot be sent: it ${fault}`;
  // An empty header would silently be left out.
  if (value.trim() === '') return 'has an empty value';
  if (Buffer.byteLength(name) + Buffer.byteLength(value) + 2 > MAX_LINE)
    return `is longer than ${MAX_LINE} bytes, name and value together`;
  if (name.toLowerCase() === 'content-type' && bodyTypeOf(value) === undefined)
    return `has a value that the service cannot send (use ${BODY_TYPES.join(' or ')})`;
  if (name.toLowerCase() === 'reply-to' && readAddressList(value) === undefined)
    return 'has a value that is not a list of email addresses';
  return undefined;
}

/** The media type of the body that a `Content-Type` header asks for, if the service can send it. */
export function bodyTypeOf(value: string): BodyType | undefined {
  const essence = value.split(';', 1)[0]?.trim().toLowerCase();
  return BODY_TYPES.find((type) => type === essence);
}

/** The value of a header, by its name in lower case. */
export const headerOf = (headers: readonly CustomHeader[], wanted: string): string | undefined =>
  headers.find(({ name }) => name.toLowerCase() === wanted)?.value;
