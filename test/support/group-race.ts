import { expect } from 'vitest';
import type { LimitStore } from '../../src/core/ports.ts';
import { createLimiter } from '../../src/index.ts';
import { groupAccount } from '../../src/limits/index.ts';

const ACCOUNTS = Array.from({ length: 50 }, (_, i) => `acc_${i}`);
const MAX = 60;
const CUSTOMER = { account: groupAccount('customer', 'cus_7') };

/**
 * Two processes decide requests of 50 accounts of one customer at once. The customer's window admits its max and no more,
 * and the requests that were rejected leave no trace: neither a count nor a window that started.
 */
export async function raceForGroup(stores: readonly [LimitStore, LimitStore]): Promise<void> {
  const limits = { default: ['3/1h', '9/1d'], groups: { customer: [`${MAX}/1h`] } };
  const limiters = stores.map((store) => createLimiter({ store, limits, logger: false }));
  const groups = { customer: 'cus_7' };
  const decisions = await Promise.all(
    [0, 1, 2, 3].flatMap((turn) =>
      ACCOUNTS.map((account) => (limiters[turn % 2] as (typeof limiters)[0]).consume({ account, groups })),
    ),
  );
  const accepted = decisions.filter((decision) => decision.accepted);
  const [limiter] = limiters as [(typeof limiters)[0]];
  const [customer] = await limiter.peek(CUSTOMER);
  expect(accepted.length).toBe(MAX - (customer?.remaining ?? 0));
  expect(accepted.length).toBeLessThanOrEqual(MAX);
  // What was undone makes room for later requests.
  for (let i = accepted.length; i < MAX; i++)
    expect((await limiter.consume({ account: `late_${i}`, groups })).accepted).toBe(true);
  expect(await limiter.consume({ account: 'late', groups })).toMatchObject({ rejectedBy: 'customer' });
  for (const account of ACCOUNTS) {
    const own = accepted.filter((decision) => decision.account === account);
    const windows = await limiter.peek({ account });
    expect(windows.map(({ max, remaining }) => max - remaining)).toEqual([own.length, own.length]);
    // Requests in between may have kept it alive, but without any it never started.
    if (own.length === 0) expect(windows.map(({ startedAt }) => startedAt)).toEqual([undefined, undefined]);
  }
}
