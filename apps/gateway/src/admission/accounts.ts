import type { Account, Config } from '../config/schema.ts';
import { type Refusal, refuse } from '../exchange/refusal.ts';
import type { ApiKey } from './keys.ts';

/** The accounts of the config, and which keys may reach them. */
export interface Accounts {
  /** The account. 404 if it is unknown to the key's application, 403 if it is outside the key's scope. */
  access(id: string, key: ApiKey): Account | Refusal;
  /** Undefined if the account is not in the config. For operators, who may see the accounts of every application. */
  find(id: string): Account | undefined;
}

/** @param config accounts with unique ids */
export function createAccounts(config: Config['accounts']): Accounts {
  const accounts = new Map(config.map((account) => [account.id, account]));
  return {
    find: (id) => accounts.get(id),
    access(id, key) {
      const account = accounts.get(id);
      // Another application's account gets the same answer as an unknown one, so that a caller cannot find out that it
      // exists.
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
