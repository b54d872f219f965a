import { createHash } from 'node:crypto';

/** SHA-256 of a token in lower-case hexadecimal, as keys of a config have it. */
export function digestOfToken(token: string): string {
  return createHash('sha256').update(token, 'latin1').digest('hex');
}
