import { domainToASCII } from 'node:url';

export type DomainPurpose = 'auth' | 'tracking';

/** A record of DNS that the owner of a custom domain creates. */
export interface DomainRecord {
  readonly type: 'CNAME' | 'TXT';
  readonly name: string;
  readonly value: string;
}

/** Before the host of the TXT record, which proves that the owner of the host lets the application use it. */
const TXT_LABEL = '_communication-api';
/** A DNS name is at most 253 characters long, and so is the name of the TXT record. */
const MAX_LENGTH = 253 - TXT_LABEL.length - 1;
/** Also letters of other alphabets that convert to ASCII. The conversion itself drops a path and line breaks. */
const TEXT = /^[\p{L}\p{M}\p{N}.-]+$/u;
const LABEL = /^(?!-)[a-z0-9-]{1,63}(?<!-)$/;

/**
 * A host name as it is compared: lower case, ASCII, without the dot at the end.
 * @returns undefined if it cannot be a custom domain
 */
export function customHost(text: string): string | undefined {
  if (!TEXT.test(text)) return undefined;
  const host = domainToASCII(text).toLowerCase().replace(/\.$/, '');
  const labels = host.split('.');
  const isName = labels.length > 1 && labels.every((label) => LABEL.test(label)) && host.length <= MAX_LENGTH;
  // The last label of an IPv4 address is a number.
  return isName && !/^\d+$/.test(labels.at(-1) ?? '') ? host : undefined;
}

/** @param target the host to which the custom domain leads */
export const recordsOf = (host: string, target: string, token: string): readonly DomainRecord[] => [
  { type: 'CNAME', name: host, value: target },
  { type: 'TXT', name: `${TXT_LABEL}.${host}`, value: `ca-verify=${token}` },
];
