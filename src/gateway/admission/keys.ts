import { createHash, timingSafeEqual } from 'node:crypto';
import type { Config } from '../config/schema.ts';
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
  /** The key of the token in `X-API-KEY`, or 401. */
  authenticate(token: string | undefined): ApiKey | Refusal;
}

/** @param now wall clock in milliseconds since 1970, because expiry is a date */
export function createKeys(config: Config['keys'], now: () => number = Date.now): Keys {
  const keys = config.map(({ sha256, token, application, role, scope, expiresAt }) => ({
    digest: sha256 === undefined ? digest(token ?? '') : Buffer.from(sha256, 'hex'),
    key: {
      application,
      role,
      scope,
      expiresAtMs: expiresAt === undefined ? Number.POSITIVE_INFINITY : Date.parse(expiresAt),
    },
  }));
  return {
    authenticate(token) {
      if (token === undefined || token === '') {
        return refuse(
          401,
          'errors/missing_credentials',
          'The request has no API key: send it in the header X-API-KEY.',
        );
      }
      const given = digest(token);
      let match: ApiKey | undefined;
      // Every key is compared, so that the time taken does not show which key was close.
      for (const { digest: expected, key } of keys) if (timingSafeEqual(expected, given)) match = key;
      if (match === undefined) return refuse(401, 'errors/invalid_credentials', 'The API key is unknown.');
      return now() < match.expiresAtMs
        ? match
        : refuse(401, 'api/expired_authorization', 'The API key has expired: use its replacement.');
    },
  };
}

function digest(token: string): Buffer {
  return createHash('sha256').update(token, 'latin1').digest();
}
