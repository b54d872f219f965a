/** S33 in PostgreSQL: units of an account in one statement. */
import fc from 'fast-check';
import { NIGHTLY } from 'headgate-testbed/nightly';
import { expect, it } from 'vitest';
import { createLimiter } from '../../../src/index.ts';
import { createReceipts } from '../../../src/limits/index.ts';
import { createPostgresStore } from '../../../src/stores/postgres/limits.ts';
import { createFakeClock } from '../../../src/testing/fake-clock.ts';
import { migrated, newPool } from '../../support/postgres.ts';
import { hasWindows, runUnitHistory, unitHistory } from '../../support/unit-histories.ts';

const SCHEMA = 'units';
const pools = [await migrated(newPool(), SCHEMA), newPool()] as const;
const newStore = (at: 0 | 1, options = {}) =>
  createPostgresStore(pools[at], { schema: SCHEMA, deadlineMs: 60_000, onStoreFailure: 'refuse', ...options });

it('S33: decides as the naive model does', async () => {
  await fc.assert(
    fc.asyncProperty(unitHistory.filter(hasWindows), async (history) => {
      const clock = createFakeClock(1_000_000);
      const store = newStore(0, { clock });
      await store.reset({});
      await runUnitHistory(store, clock, history);
    }),
    { numRuns: NIGHTLY ? 200 : 15 },
  );
});

it('S33: an accept is one statement, and another process settles one unit by the receipt, once', async () => {
  const receipts = createReceipts({ secret: 'a secret of more than 32 characters.' });
  const limits = ['9/1h', '1000 tokens/1h'];
  const [store, other] = [newStore(0), newStore(1)];
  const limiter = createLimiter({ store, limits, receipts, logger: false });
  const decision = await limiter.consume({ account: 'a', cost: { requests: 1, tokens: 800 } });
  expect(store.stats().calls).toBe(1);
  const elsewhere = createLimiter({ store: other, limits, receipts, logger: false });
  expect(await elsewhere.settle(decision.receipt, { tokens: 1_312 })).toBe(true);
  expect(await limiter.settle(decision, { tokens: 1 })).toBe(false);
  expect(await limiter.peek({ account: 'a' })).toMatchObject([{ remaining: 8 }, { remaining: 0 }]);
  expect(await limiter.settle(decision, { requests: 0 })).toBe(true);
  expect(await limiter.peek({ account: 'a' })).toMatchObject([{ remaining: 9 }, { remaining: 0 }]);
});
