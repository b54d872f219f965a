import type { Account } from '../config/schema.ts';
import { sortInSlices } from './sort-in-slices.ts';

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

/** The accounts whose ids begin with a prefix, which are neighbours in a sorted list. */
export function withPrefix(sorted: readonly Account[], prefix: string): readonly Account[] {
  const from = firstIndex(sorted, ({ id }) => id >= prefix);
  return sorted.slice(
    from,
    firstIndex(sorted, ({ id }) => id >= prefix && !id.startsWith(prefix)),
  );
}

/** The first place from which the test is true; the length of the list if it never is. */
function firstIndex(list: readonly Account[], test: (account: Account) => boolean): number {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (test(list[middle] as Account)) high = middle;
    else low = middle + 1;
  }
  return low;
}
