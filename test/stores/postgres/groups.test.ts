/** S31 in PostgreSQL: groups of requests of two processes. */
import { expect, it } from 'vitest';
import { createLimiter } from '../../../src/index.ts';
import { createReceipts, groupAccount } from '../../../src/limits/index.ts';
import { createPostgresStore } from '../../../src/stores/postgres/limits.ts';
import { raceForGroup } from '../../support/group-race.ts';
import { migrated, newPool } from '../../support/postgres.ts';

const SCHEMA = 'groups';
const pools = [await migrated(newPool(), SCHEMA), newPool()] as const;
const newStore = (at: 0 | 1, options = {}) =>
  createPostgresStore(pools[at], {
    schema: SCHEMA,
    deadlineMs: 60_000,
    onStoreFailure: 'refuse',
    logger: false,
    ...options,
  });

it('S31: the sum over 50 accounts of one customer never exceeds its window, and rejections leave no trace', () =>
  raceForGroup([newStore(0, { denyCacheMaxMs: 0 }), newStore(1)]));

it('S31: an accept is one statement, and another process settles every part by the receipt, once', async () => {
  const receipts = createReceipts({ secret: 'a secret of more than 32 characters.' });
  const limits = { default: ['9/1h'], groups: { customer: ['9/1h'] } };
  const [store, other] = [newStore(0), newStore(1)];
  const limiter = createLimiter({ store, limits, receipts, logger: false });
  const decision = await limiter.consume({ account: 'a', groups: { customer: 'cus_8' }, cost: 4 });
  expect(store.stats().calls).toBe(1);
  const elsewhere = createLimiter({ store: other, limits, receipts, logger: false });
  const settled = [await elsewhere.settle(decision.receipt, 1), await limiter.settle(decision, 9)];
  expect(settled).toEqual([true, false]);
  for (const account of ['a', groupAccount('customer', 'cus_8')])
    expect(await limiter.peek({ account })).toMatchObject([{ remaining: 8 }]);
});
