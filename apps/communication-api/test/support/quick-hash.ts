import { randomBytes, scryptSync } from 'node:crypto';

/**
 * The stored form of a password, with settings that take no time: a hash names its own settings. The login of a test
 * that entered its password in a form uses a real hash of the service.
 */
export function quickHash(password: string): string {
  const [N, r, p] = [2, 1, 1];
  const salt = randomBytes(16);
  const hash = scryptSync(password.normalize('NFKC'), salt, 32, { N, r, p });
  return ['scrypt', N, r, p, salt.toString('base64url'), hash.toString('base64url')].join('$');
}
