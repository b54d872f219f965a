import { type Consumer, consumerId } from './account-source.ts';
import { groupAccountsIn } from './groups.ts';
import type { Account, Config } from './schema.ts';

/** The account of a key, by which a route counts if its `account` is `key`. */
function accountOfKey({ name, application, plan, scope }: Config['keys'][number]): Account {
  return { id: consumerId('key', name), application, plan, scope };
}

/** The account of all keys of an application. The checks of a config ensure that they have one plan. */
function accountOfApplication({ application, plan }: Config['keys'][number]): Account {
  return { id: consumerId('application', application), application, plan, scope: null };
}

/**
 * Every account that a config lists, those of its keys and applications if a route counts by them, and those of groups.
 * Addresses cannot be listed.
 */
export function accountsIn({ accounts, keys, routes }: Pick<Config, 'accounts' | 'keys' | 'routes'>): Account[] {
  const counts = (consumer: Consumer): boolean => routes.some(({ account }) => account === consumer);
  const applications = new Map(keys.map((key) => [key.application, key]));
  return [
    ...accounts,
    ...(counts('key') ? keys.map(accountOfKey) : []),
    ...(counts('application') ? [...applications.values()].map(accountOfApplication) : []),
    ...groupAccountsIn({ accounts, keys, routes }),
  ];
}
