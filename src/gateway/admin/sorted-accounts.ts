import { nextTurn } from '../../http/platform.ts';
import type { Account } from '../config/schema.ts';

/** Accounts that are compared without a pause. There may be 100,000 of them, and other requests wait meanwhile. */
const RUN = 1_000;

const lists = new WeakMap<readonly Account[], Promise<readonly Account[]>>();

/** The accounts of a config, sorted by the code units of their ids, once per config. */
export function sortedAccounts(accounts: readonly Account[]): Promise<readonly Account[]> {
  let list = lists.get(accounts);
  if (list === undefined) {
    list = sort(accounts);
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

async function sort(accounts: readonly Account[]): Promise<readonly Account[]> {
  let runs: Account[][] = [];
  for (let i = 0; i < accounts.length; i += RUN) {
    runs.push(accounts.slice(i, i + RUN).sort((a, b) => (a.id < b.id ? -1 : 1)));
    await nextTurn();
  }
  while (runs.length > 1) {
    const merged: Account[][] = [];
    for (let i = 0; i < runs.length; i += 2) merged.push(await merge(runs[i] as Account[], runs[i + 1] ?? []));
    runs = merged;
  }
  return runs[0] ?? [];
}

async function merge(left: readonly Account[], right: readonly Account[]): Promise<Account[]> {
  const all: Account[] = [];
  for (let i = 0, j = 0; all.length < left.length + right.length; ) {
    const [a, b] = [left[i], right[j]];
    if (b === undefined || (a !== undefined && a.id < b.id)) {
      all.push(a as Account);
      i++;
    } else {
      all.push(b);
      j++;
    }
    if (all.length % RUN === 0) await nextTurn();
  }
  return all;
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
