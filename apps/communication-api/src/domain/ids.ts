import { randomUUID } from 'node:crypto';

/** The kind of thing that an id names, by its prefix. */
export type IdPrefix =
  | 'app'
  | 'acc'
  | 'scp'
  | 'key'
  | 'lnk'
  | 'wzs'
  | 'eml'
  | 'dom'
  | 'evt'
  | 'whe'
  | 'whc'
  | 'org'
  | 'mem'
  | 'mss'
  | 'inv'
  | 'sfa'
  | 'aud';

/** Crockford's base32: no I, L, O or U, so that an id can be read aloud. */
const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';
const FORM = /^[a-z]{3}_[0-7][0-9a-hjkmnp-tv-z]{25}$/;

/** A new id: the prefix and a UUIDv7 (RFC 9562). Ids sort by the time at which they were made. */
export function newId(prefix: IdPrefix, nowMs: number): string {
  const bytes = Buffer.from(randomUUID().replaceAll('-', ''), 'hex');
  bytes.writeUIntBE(nowMs, 0, 6);
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x70, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  return `${prefix}_${digitsOf(bytes)}`;
}

/** The smallest id of a time: every id that was made earlier is smaller. */
export function firstIdAt(prefix: IdPrefix, ms: number): string {
  const bytes = Buffer.alloc(16);
  bytes.writeUIntBE(ms, 0, 6);
  return `${prefix}_${digitsOf(bytes)}`;
}

function digitsOf(bytes: Buffer): string {
  let digits = '';
  // 26 digits have 130 bits: the number begins with two zeros.
  let [value, bits] = [0, 2];
  for (const byte of bytes) {
    value = (value << 8) | byte;
    bits += 8;
    for (; bits >= 5; bits -= 5) digits += ALPHABET.charAt((value >> (bits - 5)) & 31);
    value &= 31;
  }
  return digits;
}

/** Whether a text looks like an id. If not, it cannot name anything, so no query is needed. */
export const isId = (text: string, prefix: IdPrefix): boolean => text.startsWith(`${prefix}_`) && FORM.test(text);
