import { z } from 'zod';
import { type Operation, operation } from '../../api/operation.ts';
import { MAX_NAME, next, paging } from '../../api/schemas.ts';
import type { Account } from '../../config/schema.ts';
import type { AdminContext } from '../context.ts';
import { pageOf } from '../paging.ts';
import { accountsWithPrefix, sortedAccounts } from '../sorted-accounts.ts';

const account = z.object({
  id: z.string(),
  application: z.string(),
  provider: z.string().nullable(),
  plan: z.string().nullable(),
});
export type ListedAccount = z.output<typeof account>;

/** The accounts of the config, its keys and its applications. */
export function accountOperations({ accounts }: AdminContext): Operation[] {
  return [
    operation({
      id: 'listAccounts',
      method: 'GET',
      path: '/v1/accounts',
      role: 'viewer',
      tag: 'Limits',
      summary: 'The accounts of the config, sorted by id; also keys and applications if routes count by them',
      query: z.strictObject({
        prefix: z.string().max(MAX_NAME).default('').describe('Only accounts whose ids begin with it'),
        ...paging,
      }),
      answer: z.object({ accounts: z.array(account), next }),
      async run({ query }) {
        const all = await sortedAccounts(accounts().all);
        const { entries, next } = pageOf(accountsWithPrefix(all, query.prefix), query);
        return { accounts: entries.map(shownAccount), next };
      },
    }),
  ];
}

function shownAccount({ id, application, provider, plan }: Account): ListedAccount {
  return { id, application, provider: provider ?? null, plan: plan ?? null };
}
