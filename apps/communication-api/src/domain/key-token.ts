import { createHash, randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';

export type Role = 'service' | 'account' | 'scoped';
export type Environment = 'development' | 'production';

const ROLE_MARKS: Readonly<Record<Role, string>> = { service: 'svc', account: 'acc', scoped: 'scp' };
const ENVIRONMENT_MARKS: Readonly<Record<Environment, string>> = { development: 'dev', production: 'live' };
const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const SECRET_LENGTH = 43;
const CHECK_LENGTH = 6;
const FORM = /^ck_(?:svc|acc|scp)_(?:live|dev)_[0-9A-Za-z]{49}$/;
/** Characters of the secret that the prefix shows. */
const SHOWN = 4;

/**
 * A new token: `ck_<role>_<environment>_`, 256 random bits, and a checksum that finds typing errors without a query.
 */
export function newToken(role: Role, environment: Environment): string {
  const mark = `ck_${ROLE_MARKS[role]}_${ENVIRONMENT_MARKS[environment]}_`;
  const secret = base62(BigInt(`0x${randomBytes(32).toString('hex')}`), SECRET_LENGTH);
  return mark + secret + checksum(mark + secret);
}

/** Whether the form and the checksum of a token are right. */
export const isToken = (text: string): boolean =>
  FORM.test(text) && text.slice(-CHECK_LENGTH) === checksum(text.slice(0, -CHECK_LENGTH));

/** The part of a token that may be shown: its mark and four characters. */
export const prefixOf = (token: string): string => token.slice(0, token.lastIndexOf('_') + 1 + SHOWN);

/** The stored form of a token: SHA-256 in hexadecimal. A slow hash would add nothing to 256 random bits. */
export const hashOf = (token: string): string => createHash('sha256').update(token).digest('hex');

const checksum = (text: string): string => base62(BigInt(crc32(text)), CHECK_LENGTH);

function base62(value: bigint, length: number): string {
  let rest = value;
  let digits = '';
  for (let i = 0; i < length; i++) {
    digits = ALPHABET.charAt(Number(rest % 62n)) + digits;
    rest /= 62n;
  }
  return digits;
}
