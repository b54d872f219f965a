import { hash } from 'node:crypto';

/** SHA-256 of a token in lower-case hexadecimal, the form of a config's keys. */
export function digestOfToken(token: string): string {
  // Every request is hashed. A hash object costs several times as much as this call.
  return hash('sha256', Buffer.from(token, 'latin1'), 'hex');
}

const NAME_DIGITS = 12;

/** The name of a key without a name of its own. */
export function keyName(sha256: string): string {
  return sha256.slice(0, NAME_DIGITS);
}
