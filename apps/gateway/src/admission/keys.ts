import type { Groups } from 'headgate/limits';
import type { Config } from '../config/schema.ts';
import type { Refusal } from '../exchange/refusal.ts';
import { createCredentials } from './credentials.ts';

/** The accounts that a key may reach. */
export type Role = 'service' | 'account' | 'scoped';

/** An API key without its secret. */
export interface ApiKey {
  /** Unique in the config. */
  readonly name: string;
  /** A key reaches only accounts of its application. */
  readonly application: string;
  readonly role: Role;
  /** The one scope of a scoped key. */
  readonly scope: string | null;
  /** The lane of its requests. */
  readonly lane?: string | undefined;
  /** Their groups: an id by name. */
  readonly groups?: Groups | undefined;
}

/** Knows keys by the SHA-256 of their tokens. */
export interface Keys {
  /** The key that a request's token belongs to, or 401. */
  authenticate(token: string | undefined): ApiKey | Refusal;
}

const PROBLEMS = {
  missing: 'The request has no API key: send it in the header X-API-KEY, or as Authorization: Bearer.',
  unknown: 'The API key is unknown.',
  expired: 'The API key has expired: use its replacement.',
};

/** @param now wall clock in milliseconds since 1970, because expiry is a date */
export function createKeys(config: Config['keys'], now: () => number = Date.now): Keys {
  return { authenticate: createCredentials(config, PROBLEMS, now) };
}
