import type { IncomingMessage } from 'node:http';
import { fieldValues } from 'headgate/internal';
import { digestOfToken } from '../config/token-digest.ts';
import { type Refusal, refuse } from '../exchange/refusal.ts';

/** Any case is allowed, and so are several spaces (RFC 9110, section 11.1). */
const BEARER = /^bearer +(.*)$/i;

/** A credential of the config: the SHA-256 of its token, and when it ends. */
export interface Credential {
  readonly sha256: string;
  readonly expiresAt?: string | undefined;
}

/** @param now wall clock in milliseconds since 1970, because expiry is a date */
export function isExpired({ expiresAt }: Credential, now: number): boolean {
  return expiresAt !== undefined && now >= Date.parse(expiresAt);
}

/** Problem texts for requests without a valid credential. */
export interface CredentialProblems {
  readonly missing: string;
  readonly unknown: string;
  readonly expired: string;
}

/**
 * Knows credentials by the SHA-256 of their tokens. The look-up takes constant time for any number of them. Its time
 * shows nothing of a token, because no client can choose the digest of a token.
 * @param now wall clock
 * @returns a function that returns the credential of a token, or 401
 */
export function createCredentials<Known extends Credential>(
  known: readonly Known[],
  problems: CredentialProblems,
  now: () => number,
): (token: string | undefined) => Known | Refusal {
  const byDigest = new Map(known.map((credential) => [credential.sha256, credential]));
  return (token) => {
    if (token === undefined || token === '') return refuse(401, 'errors/missing_credentials', problems.missing);
    const found = byDigest.get(digestOfToken(token));
    if (found === undefined) return refuse(401, 'errors/invalid_credentials', problems.unknown);
    return isExpired(found, now()) ? refuse(401, 'api/expired_authorization', problems.expired) : found;
  };
}

/** The token of `Authorization: Bearer`; undefined without one. */
export function bearerTokenOf({ headers, rawHeaders }: IncomingMessage): string | undefined {
  if (headers.authorization === undefined) return undefined;
  // Node's `headers` contains only the first of several, and an upstream could read another.
  return BEARER.exec(fieldValues(rawHeaders, 'authorization').join())?.[1];
}
