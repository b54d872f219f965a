import { Decision, FITS, type WindowStatus } from '../core/decision.ts';
import type { Limit } from '../core/limit.ts';
import { NEVER } from '../core/window.ts';
import { createWindowSet } from '../core/window-set.ts';
import { assertEqual } from './assert-equal.ts';
import { LATE_RECEIPT, type LimitCases, OTHER_RECEIPT, RECEIPT, remainingOf, windowSet } from './limit-cases.ts';

/** Tests of what changes a count later or without room, by their names: `settle`, `settleOnce` and `charge`. */
export const SETTLE_CASES: LimitCases = {
  async 'S13: a refund after the end of its window does not change the next window'(store, clock) {
    const minute = windowSet([], ['3/1m']);
    const old = await store.consume('a', 'r', minute, 2);
    clock.advance(60_000);
    await store.consume('a', 'r', minute, 1);
    assertEqual(await store.settle(old, 0), false);
    assertEqual((await store.peek('a', 'r', minute))[0]?.remaining, 2);
  },

  async 'S13: a decision is settled once, by the difference; what is more than was charged may exceed the max'(store) {
    const limits = windowSet(['9/1m'], ['20/1d']);
    const remaining = (): Promise<number[]> => remainingOf(store, limits);
    const [less, more] = [await store.consume('a', 'r', limits, 5), await store.consume('a', 'r', limits, 1)];
    assertEqual([await store.settle(less, 2), await remaining()], [true, [6, 17]]);
    assertEqual([await store.settle(less, 0), await remaining()], [false, [6, 17]]);
    assertEqual([await store.settle(more, 11), await remaining()], [true, [0, 7]]);
    const rejected = await store.consume('a', 'r', limits, 1);
    assertEqual([rejected.accepted, rejected.shown?.remaining], [false, 0]);
    assertEqual([await store.settle(rejected, 3), await remaining()], [false, [0, 7]]);
  },

  async 'S13: settling never creates a key'(store, clock) {
    const minute = windowSet([], ['3/1m']);
    const decision = await store.consume('a', 'r', minute, 1);
    await store.reset({});
    assertEqual(await store.settle(decision, 3), false);
    const late = await store.consume('a', 'r', minute, 1);
    clock.advance(60_000);
    assertEqual(await store.settle(late, 3), false);
    assertEqual((await store.peek('a', 'r', minute))[0]?.startedAt, undefined);
  },

  async 'S31: an undone decision leaves every window as it was, its start included, and what others counted stays'(
    store,
    clock,
  ) {
    if (store.undo === undefined) return;
    const limits = windowSet(['3/1m'], ['9/1h'], 'account');
    const windows = async (): Promise<unknown[]> =>
      (await store.peek('a', 'r', limits)).map(({ remaining, startedAt }) => [remaining, startedAt]);
    const unused = await windows();
    const first = await store.consume('a', 'r', limits, 2);
    assertEqual([await store.undo(first), await windows()], [true, unused]);
    assertEqual([await store.undo(first), await store.settle(first, 3), await windows()], [false, false, unused]);
    const together = [await store.consume('a', 'r', limits, 2), await store.consume('a', 'r', limits, 1)];
    const rejected = await store.consume('a', 'r', limits, 1);
    assertEqual([rejected.accepted, await store.undo(rejected)], [false, false]);
    for (const decision of together) assertEqual(await store.undo(decision), true);
    assertEqual(await windows(), unused);
    clock.advance(10);
    const start = clock.now();
    await store.consume('a', 'r', limits, 1);
    const refunded = await store.consume('a', 'other', limits, 1);
    clock.advance(10);
    const later = await store.consume('a', 'r', limits, 2);
    assertEqual(await store.settle(refunded, 0), true);
    assertEqual(await store.undo(later), true);
    const before = [
      [2, start],
      [8, start],
    ];
    assertEqual(await windows(), before);
    // The window that is over is not the next one's.
    clock.advance(60_000);
    const next = await store.consume('a', 'r', limits, 3);
    assertEqual([next.accepted, await store.undo(next)], [true, true]);
    assertEqual(await windows(), [
      [3, undefined],
      [8, start],
    ]);
  },

  async 'S35: a charge adds its cost to every window, also to full and blocked ones, and no count overflows'(
    store,
    clock,
  ) {
    if (store.charge === undefined) return;
    const limits = windowSet(['2/1s'], ['5/1m'], 'account');
    const remaining = (windows: readonly WindowStatus[]): unknown[] =>
      windows.map((window) => [window.remaining, window.resetMs, window.startedAt]);
    const start = clock.now();
    const first = [
      [1, 1_000, start],
      [4, 60_000, start],
    ];
    assertEqual(remaining(await store.charge('a', 'r', limits, 1)), first);
    assertEqual(remaining(await store.peek('a', 'r', limits)), first);
    await store.block?.({ account: 'a' }, { forMs: 500 });
    clock.advance(500);
    const full = [
      [0, 500, start],
      [0, 59_500, start],
    ];
    assertEqual(remaining(await store.charge('a', 'r', limits, 5)), full);
    clock.advance(500);
    // The route's window starts again, and the account's is still too full by one.
    const next = [
      [1, 1_000, start + 1_000],
      [0, 59_000, start],
    ];
    assertEqual(remaining(await store.charge('a', 'other', limits, 1)), next);
    const decision = await store.consume('a', 'other', limits, 1);
    assertEqual([decision.accepted, decision.shown?.limit], [false, 'all-methods']);
    for (let i = 0; i < 2; i++) await store.charge('a', 'r', limits, Number.MAX_SAFE_INTEGER);
    assertEqual((await store.consume('a', 'r', windowSet(['2/1s'], ['5/1m'], 'account'), 1)).accepted, false);
    assertEqual(await store.charge('a', 'r', windowSet([], []), 1), []);
  },

  async 'S37: a receipt is settled once, by whichever decision it comes with, and is forgotten with its windows'(
    store,
    clock,
  ) {
    if (store.settleOnce === undefined) return;
    const limits = windowSet(['9/1s'], ['20/1m'], 'account');
    const remaining = (): Promise<number[]> => remainingOf(store, limits);
    const decision = await store.consume('a', 'r', limits, 5);
    const other = await store.consume('a', 'r', limits, 1);
    // As another process makes it of a receipt: with the windows that were charged, but other maxes.
    const copy = copyOf(decision);
    assertEqual([await store.settleOnce(copy, 2, RECEIPT), await remaining()], [true, [6, 17]]);
    assertEqual([await store.settleOnce(decision, 0, RECEIPT), await remaining()], [false, [6, 17]]);
    assertEqual([await store.settleOnce(copyOf(decision), 9, RECEIPT), await remaining()], [false, [6, 17]]);
    assertEqual([await store.settleOnce(other, 0, OTHER_RECEIPT), await remaining()], [true, [7, 18]]);
    clock.advance(1_000);
    // Only the longer window is left: the receipt is remembered as long as that one.
    assertEqual([await store.settleOnce(copyOf(decision), 9, RECEIPT), await remaining()], [false, [9, 18]]);
    await store.reset({});
    assertEqual([await store.settleOnce(copyOf(decision), 9, RECEIPT), await remaining()], [false, [9, 20]]);
    const late = await store.consume('a', 'r', limits, 4);
    clock.advance(1_000);
    assertEqual([await store.settleOnce(late, 1, LATE_RECEIPT), await remaining()], [true, [9, 19]]);
    clock.advance(60_000);
    assertEqual(await store.settleOnce(copyOf(late), 0, LATE_RECEIPT), false);
  },

  async 'S37: a receipt that changed nothing is not remembered'(store) {
    if (store.settleOnce === undefined) return;
    const limits = windowSet(['9/1h'], []);
    const decision = await store.consume('a', 'r', limits, 5);
    assertEqual(await store.settleOnce(copyOf(decision, 'another route'), 0, RECEIPT), false);
    assertEqual(await store.settleOnce(decision, 0, RECEIPT), true);
    const rejected = await store.consume('a', 'r', limits, 10);
    assertEqual([rejected.accepted, await store.settleOnce(rejected, 0, OTHER_RECEIPT)], [false, false]);
  },
};

/** The decision as a receipt brings it to another process. */
function copyOf({ account, route, cost, decidedAt, trace, windowSet }: Decision, ofRoute = route): Decision {
  const limitOf = (name: string): Limit =>
    trace.filter(({ limit }) => limit === name).map(({ durationMs }) => ({ max: 1, durationMs }));
  const windows = createWindowSet(limitOf('route'), limitOf('all-methods'), windowSet.allMethodsScope);
  const counters = trace.flatMap(({ startedAt = NEVER }) => [startedAt, cost]);
  return new Decision(account, ofRoute, windows, cost, decidedAt, FITS, counters);
}
