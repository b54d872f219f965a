import { createHash, randomInt } from 'node:crypto';

/** Crockford's base32, so that a code can be written down: no I, L, O or U. */
const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';
const CODES = 10;
/** 80 bits: too many to try, also for a person who has the hashes. */
const LENGTH = 16;

/** Ten new recovery codes, such as `k3f9-02mz-x7qa-w1nd`. */
export const newRecoveryCodes = (): readonly string[] =>
  Array.from({ length: CODES }, () =>
    Array.from({ length: LENGTH }, () => ALPHABET.charAt(randomInt(ALPHABET.length)))
      .join('')
      .replace(/.{4}(?=.)/g, '$&-'),
  );

/** The stored form of a member's code, in hexadecimal. Letters that look like digits count as these digits. */
export function hashRecoveryCode(memberId: string, code: string): string {
  const plain = code.toLowerCase().replace(/[\s-]/g, '').replaceAll('o', '0').replace(/[il]/g, '1');
  return createHash('sha256').update(`${memberId} ${plain}`).digest('hex');
}
