import { assertEqual } from './assert-equal.ts';
import { FRESH } from './history-run.ts';
import { type LimitCases, remainingOf, windowSet } from './limit-cases.ts';

/** Tests of blocks, which are optional, by their names. */
export const BLOCK_CASES: LimitCases = {
  async 'S21: a block rejects before every window, charges nothing, and ends by itself or when it is lifted'(
    store,
    clock,
  ) {
    if (store.block === undefined || store.unblock === undefined) return;
    const minute = windowSet(['5/1m'], ['9/1d'], 'account');
    const accepts = async (route = 'r'): Promise<boolean> => (await store.consume('a', route, minute, 1)).accepted;
    assertEqual(await accepts(), true);
    await store.block({ account: 'a' }, { forMs: 1_000, reason: 'too many failures' });
    await store.reset({ account: 'b' });
    const { blocked, shown, trace, impossible } = await store.consume('a', 'r', minute, 1);
    assertEqual(
      { blocked, shown, trace, impossible },
      { blocked: { forMs: 1_000, reason: 'too many failures' }, shown: undefined, trace: [], impossible: false },
    );
    assertEqual(await accepts('another route'), false);
    assertEqual((await store.consume('another account', 'r', minute, 1)).accepted, true);
    assertEqual(await remainingOf(store, minute), [4, 8]);
    await store.reset({ account: 'a' });
    assertEqual(await accepts(), false);
    clock.advance(999);
    assertEqual(await accepts(), false);
    clock.advance(1);
    assertEqual(await accepts(), true);
    await store.block({ account: 'a', route: 'r' }, { forMs: 1_000 });
    assertEqual([await accepts(), await accepts('another route')], [false, true]);
    await store.unblock({ account: 'a', route: 'r' });
    assertEqual(await accepts(), true);
  },

  async 'S36: a block with a fresh start deletes the counters of exactly its target, in every window'(store, clock) {
    if (store.block === undefined || store.unblock === undefined) return;
    const limits = windowSet(['3/1m'], ['5/1d'], 'account');
    const remaining = (account?: string, route?: string): Promise<number[]> =>
      remainingOf(store, limits, account, route);
    for (const account of ['a', 'b']) for (const route of ['r', 's']) await store.consume(account, route, limits, 1);
    const before = await store.consume('a', 'r', limits, 1);
    clock.advance(1);
    await store.block({ account: 'a', route: 'r' }, { forMs: 10 }, FRESH);
    assertEqual(
      [await remaining(), await remaining('a', 's')],
      [
        [3, 2],
        [2, 2],
      ],
    );
    assertEqual((await store.consume('a', 'r', limits, 1)).accepted, false);
    await store.block({ account: 'a' }, { forMs: 10 }, FRESH);
    assertEqual(
      [await remaining(), await remaining('a', 's'), await remaining('b', 's')],
      [
        [3, 5],
        [3, 5],
        [2, 3],
      ],
    );
    assertEqual([await store.settle(before, 3), await remaining()], [false, [3, 5]]);
    assertEqual((await store.consume('a', 's', limits, 1)).accepted, false);
    clock.advance(10);
    const next = await store.consume('a', 'r', limits, 2);
    assertEqual([next.accepted, await remaining(), await remaining('a', 's')], [true, [1, 3], [3, 3]]);
    assertEqual([await store.settle(next, 1), await remaining()], [true, [2, 4]]);
    clock.advance(60_000);
    assertEqual((await store.consume('a', 'r', limits, 3)).shown?.remaining, 1);
    assertEqual((await store.consume('a', 'r', limits, 1)).accepted, false);
  },
};
