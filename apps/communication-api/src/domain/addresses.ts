import { domainToASCII } from 'node:url';
import addressparser from 'nodemailer/lib/addressparser';
import { headerTextFault } from './header-text.ts';

/** RFC 5321: at most 64 bytes for a local part, and 254 for an address. */
const MAX_LOCAL = 64;
const MAX_ADDRESS = 254;
/**
 * Dot-atoms of RFC 5322, and letters of any script (RFC 6531). Quoted local parts are rejected: they allow smuggling.
 */
const LOCAL = /^[\p{L}\p{N}\p{M}!#$%&'*+/=?^_`{|}~-]+(?:\.[\p{L}\p{N}\p{M}!#$%&'*+/=?^_`{|}~-]+)*$/u;
const DOMAIN = /^(?=.{1,253}$)(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

/**
 * Reads an email address strictly, and returns it with its domain in lower-case ASCII; undefined for any other text.
 */
export function readAddress(text: string): string | undefined {
  const at = text.lastIndexOf('@');
  const local = text.slice(0, at);
  if (at < 1 || Buffer.byteLength(local) > MAX_LOCAL || !LOCAL.test(local)) return undefined;
  // domainToASCII reads an IPv4 address in any notation, and `%` escapes.
  const given = text.slice(at + 1);
  if (/[%\s/:?#@[\]\\]/.test(given)) return undefined;
  const domain = domainToASCII(given);
  if (!DOMAIN.test(domain) || /\.\d+$/.test(domain)) return undefined;
  const address = `${local}@${domain}`;
  return Buffer.byteLength(address) <= MAX_ADDRESS ? address : undefined;
}

/** One mailbox of a header such as `Reply-To`. */
export interface NamedAddress {
  readonly name: string;
  readonly address: string;
}

/** Reads the value of an address header, strictly: mailboxes only, no groups. Undefined if it is something else. */
export function readAddressList(text: string): readonly NamedAddress[] | undefined {
  const mailboxes: NamedAddress[] = [];
  for (const entry of addressparser(text)) {
    const address = entry.address === undefined ? undefined : readAddress(entry.address);
    if (address === undefined || headerTextFault(entry.name) !== undefined) return undefined;
    mailboxes.push({ name: entry.name, address });
  }
  return mailboxes.length === 0 ? undefined : mailboxes;
}
