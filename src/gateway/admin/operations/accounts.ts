import { z } from 'zod';
import type { Account } from '../../config/schema.ts';
import type { AdminContext } from '../context.ts';
import { type Operation, operation } from '../operation.ts';
import { pageOf } from '../paging.ts';
import { MAX_NAME, next, paging } from '../schemas.ts';

const account = z.object({
  id: z.string(),
  application: z.string(),
  provider: z.string().nullable(),
  plan: z.string().nullable(),
});
export type ListedAccount = z.output<typeof account>;

/** The accounts of the config. */
export function accountOperations({ config }: AdminContext): Operation[] {
  return [
    operation({
      id: 'listAccounts',
      method: 'GET',
      path: '/v1/accounts',
      role: 'viewer',
      tag: 'Limits',
      summary: 'The accounts of the config, sorted by id',
      query: z.strictObject({
        prefix: z.string().max(MAX_NAME).default('').describe('Only accounts whose ids begin with it'),
        ...paging,
      }),
      answer: z.object({ accounts: z.array(account), next }),
      run({ query }) {
        const { entries, next } = pageOf(withPrefix(sorted(config().accounts), query.prefix), query);
        return { accounts: entries.map(shownAccount), next };
      },
    }),
  ];
}

function shownAccount({ id, application, provider = null, plan = null }: Account): ListedAccount {
  return { id, application, provider, plan };
}

const sortedLists = new WeakMap<readonly Account[], readonly Account[]>();

/** Sorted by the code units of the ids, once per config: to sort 100,000 accounts takes longer than a request may. */
function sorted(accounts: readonly Account[]): readonly Account[] {
  let list = sortedLists.get(accounts);
  if (list === undefined) {
    list = [...accounts].sort((a, b) => (a.id < b.id ? -1 : 1));
    sortedLists.set(accounts, list);
  }
  return list;
}

/** The accounts whose ids begin with a prefix, which are neighbours in a sorted list. */
function withPrefix(list: readonly Account[], prefix: string): readonly Account[] {
  const from = firstIndex(list, ({ id }) => id >= prefix);
  return list.slice(
    from,
    firstIndex(list, ({ id }) => id >= prefix && !id.startsWith(prefix)),
  );
}

/** The first place from which on the test is true; the length of the list if there is none. */
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
