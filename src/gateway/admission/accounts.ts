import type { Config } from '../config/schema.ts';
import { type Refusal, refuse } from '../exchange/refusal.ts';
import type { ApiKey } from './keys.ts';

/** A connected account of the config. */
export interface Account {
  readonly id: string;
  readonly application: string;
  readonly provider: string | undefined;
  readonly scope: string | null;
}

/** Knows accounts, and who may reach them. */
export interface Accounts {
  /** The account, where the key may reach it; 404 where its application has none of that id, 403 outside the key's scope. */
  access(id: string, key: ApiKey): Account | Refusal;
}

/** @param config whose ids are unique */
export function createAccounts(config: Config['accounts']): Accounts {
  const accounts = new Map(
    config.map(({ id, application, provider, scope }) => [id, { id, application, provider, scope } satisfies Account]),
  );
  return {
    access(id, key) {
      const account = accounts.get(id);
      // Another application's account is unknown: its existence is none of the caller's business.
      if (account === undefined || account.application !== key.application) {
        return refuse(404, 'errors/invalid_resource_identifier', 'The application has no such account.');
      }
      if (key.role === 'scoped' && account.scope !== key.scope) {
        return refuse(403, 'errors/resource_access_restricted', "The account is outside the API key's scope.");
      }
      return account;
    },
  };
}
