import type { Config } from '../config/schema.ts';
import { digestOfToken } from '../config/token-digest.ts';
import { type Refusal, refuse } from '../exchange/refusal.ts';

/** What a key may reach. */
export type Role = 'service' | 'account' | 'scoped';

/** An API key without its secret. */
export interface ApiKey {
  /** A key reaches only accounts of its application. */
  readonly application: string;
  readonly role: Role;
  /** The one scope of a scoped key. */
  readonly scope: string | null;
  /** Milliseconds since 1970; infinite for a key that never expires. */
  readonly expiresAtMs: number;
}

/** Knows keys by the SHA-256 of their tokens. */
export interface Keys {
  /** The key of the token that a request has, or 401. */
  authenticate(token: string | undefined): ApiKey | Refusal;
}

/**
 * A key is looked up by the SHA-256 of its token, in constant time for any number of keys. The time of the look-up
 * shows nothing of a token, because no client can choose the digest of what it sends.
 * @param now wall clock in milliseconds since 1970, because expiry is a date
 */
export function createKeys(config: Config['keys'], now: () => number = Date.now): Keys {
  const keys = new Map<string, ApiKey>();
  for (const { sha256, application, role, scope, expiresAt } of config) {
    const expiresAtMs = expiresAt === undefined ? Number.POSITIVE_INFINITY : Date.parse(expiresAt);
    keys.set(sha256, { application, role, scope, expiresAtMs });
  }
  return {
    authenticate(token) {
      if (token === undefined || token === '') {
        return refuse(
          401,
          'errors/missing_credentials',
          'The request has no API key: send it in the header X-API-KEY, or as Authorization: Bearer.',
        );
      }
      const key = keys.get(digestOfToken(token));
      if (key === undefined) return refuse(401, 'errors/invalid_credentials', 'The API key is unknown.');
      return now() < key.expiresAtMs
        ? key
        : refuse(401, 'api/expired_authorization', 'The API key has expired: use its replacement.');
    },
  };
}
