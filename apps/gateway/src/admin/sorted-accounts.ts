import type { Account } from '../config/schema.ts';
import { sortInSlices, withPrefix } from './sort-in-slices.ts';

const lists = new WeakMap<readonly Account[], Promise<readonly Account[]>>();

/** The accounts of a config, sorted by the code units of their ids, once per config. */
export function sortedAccounts(accounts: readonly Account[]): Promise<readonly Account[]> {
  let list = lists.get(accounts);
  if (list === undefined) {
    list = sortInSlices(accounts, ({ id }) => id);
    lists.set(accounts, list);
  }
  return list;
}

/** The accounts whose ids begin with a prefix. */
export function accountsWithPrefix(sorted: readonly Account[], prefix: string): readonly Account[] {
  return withPrefix(sorted, prefix, ({ id }) => id);
}
