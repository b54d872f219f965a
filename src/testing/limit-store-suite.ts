import type FastCheck from 'fast-check';
import { Decision, FITS, type WindowStatus } from '../core/decision.ts';
import { type Limit, parseLimit } from '../core/limit.ts';
import { type LimitStore, MAX_LEASED_REQUESTS } from '../core/ports.ts';
import { NEVER } from '../core/window.ts';
import { type AllMethodsScope, createWindowSet, type WindowSet } from '../core/window-set.ts';
import { createArbitraries } from './arbitraries.ts';
import { assertEqual } from './assert-equal.ts';
import { createFakeClock, type FakeClock } from './fake-clock.ts';
import { FRESH, furtherOf, HistoryRun } from './history-run.ts';

/** The functions of a test runner that the suite needs; vitest, jest, mocha and node:test offer them. */
export interface SuiteRunner {
  /** Defines a group of cases. */
  describe(name: string, define: () => void): void;
  /** Defines a case. It fails if `run` rejects. */
  it(name: string, run: () => Promise<void>, timeoutMs?: number): void;
}

/** The store under test. */
export interface LimitStoreSubject {
  readonly name: string;
  /** Returns a new, empty store that uses `clock`. Called for every case and every history. */
  create(clock: FakeClock): LimitStore | Promise<LimitStore>;
  /** Releases the resources of the store. */
  destroy?(store: LimitStore): void | Promise<void>;
  /**
   * Number of random histories.
   * @default 500
   */
  readonly histories?: number;
}

/**
 * Tests a limit store against the naive model and by the rules. For the same history, every store must make the same
 * decisions.
 * @example
 * ```ts
 * limitStoreSuite({ describe, it }, fc, { name: 'mine', create: (clock) => createMyStore({ clock }) });
 * ```
 */
export function limitStoreSuite({ describe, it }: SuiteRunner, fc: typeof FastCheck, subject: LimitStoreSubject): void {
  const { name, histories = 500 } = subject;
  const withStore = async (run: (store: LimitStore, clock: FakeClock) => Promise<void>): Promise<void> => {
    const clock = createFakeClock(1_000_000_000_000);
    const store = await subject.create(clock);
    try {
      await run(store, clock);
    } finally {
      await subject.destroy?.(store);
    }
  };

  describe(`${name} as a limit store`, () => {
    it(`decides as the naive model does, in ${histories} random histories`, () => {
      const property = fc.asyncProperty(createArbitraries(fc).history, (history) =>
        withStore((store, clock) => new HistoryRun(store, clock, history).run()),
      );
      return fc.assert(property, { numRuns: histories });
    }, 300_000);

    it('S1, S4: of simultaneous equal requests as many are accepted as fit, each with a remaining of its own', () =>
      withStore(async (store) => {
        const decisions = await Promise.all(
          Array.from({ length: 10 }, () => store.consume('a', 'r', windowSet(['7/1m'], ['9/1d']), 1)),
        );
        // A store may decide them in any order, as a pool of connections does.
        const shown = decisions.map(({ accepted, shown }) => [accepted, shown?.limit, shown?.remaining]);
        assertEqual(
          shown.sort((one, other) => Number(other[2]) - Number(one[2])),
          [
            ...[8, 7, 6, 5, 4, 3, 2].map((remaining) => [true, 'all-methods', remaining]),
            ...Array(3).fill([false, 'route', 0]),
          ],
          ['the store, called ten times at once,', 'one decision after another, in any order'],
        );
      }));

    it('S5: a rejected request charges nothing, in no window', () =>
      withStore(async (store) => {
        const tight = windowSet(['5/1m'], ['2/1d']);
        for (let i = 0; i < 5; i++) await store.consume('a', 'r', tight, 1);
        assertEqual(
          (await store.peek('a', 'r', tight)).map(({ remaining }) => remaining),
          [3, 0],
        );
      }));

    it('S13: a refund after the end of its window does not change the next window', () =>
      withStore(async (store, clock) => {
        const minute = windowSet([], ['3/1m']);
        const old = await store.consume('a', 'r', minute, 2);
        clock.advance(60_000);
        await store.consume('a', 'r', minute, 1);
        assertEqual(await store.settle(old, 0), false);
        assertEqual((await store.peek('a', 'r', minute))[0]?.remaining, 2);
      }));

    it('S13: a decision is settled once, by the difference; what is more than was charged may exceed the max', () =>
      withStore(async (store) => {
        const limits = windowSet(['9/1m'], ['20/1d']);
        const remaining = async (): Promise<number[]> =>
          (await store.peek('a', 'r', limits)).map((window) => window.remaining);
        const [less, more] = [await store.consume('a', 'r', limits, 5), await store.consume('a', 'r', limits, 1)];
        assertEqual([await store.settle(less, 2), await remaining()], [true, [6, 17]]);
        assertEqual([await store.settle(less, 0), await remaining()], [false, [6, 17]]);
        assertEqual([await store.settle(more, 11), await remaining()], [true, [0, 7]]);
        const rejected = await store.consume('a', 'r', limits, 1);
        assertEqual([rejected.accepted, rejected.shown?.remaining], [false, 0]);
        assertEqual([await store.settle(rejected, 3), await remaining()], [false, [0, 7]]);
      }));

    it('S13: settling never creates a key', () =>
      withStore(async (store, clock) => {
        const minute = windowSet([], ['3/1m']);
        const decision = await store.consume('a', 'r', minute, 1);
        await store.reset({});
        assertEqual(await store.settle(decision, 3), false);
        const late = await store.consume('a', 'r', minute, 1);
        clock.advance(60_000);
        assertEqual(await store.settle(late, 3), false);
        assertEqual((await store.peek('a', 'r', minute))[0]?.startedAt, undefined);
      }));

    it('S35: a charge adds its cost to every window, also to full and blocked ones, and no count overflows', () =>
      withStore(async (store, clock) => {
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
      }));

    it('S37: a receipt is settled once, by whichever decision it comes with, and is forgotten with its windows', () =>
      withStore(async (store, clock) => {
        if (store.settleOnce === undefined) return;
        const limits = windowSet(['9/1s'], ['20/1m'], 'account');
        const remaining = async (): Promise<number[]> =>
          (await store.peek('a', 'r', limits)).map((window) => window.remaining);
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
      }));

    it('S37: a receipt that changed nothing is not remembered', () =>
      withStore(async (store) => {
        if (store.settleOnce === undefined) return;
        const limits = windowSet(['9/1h'], []);
        const decision = await store.consume('a', 'r', limits, 5);
        assertEqual(await store.settleOnce(copyOf(decision, 'another route'), 0, RECEIPT), false);
        assertEqual(await store.settleOnce(decision, 0, RECEIPT), true);
        const rejected = await store.consume('a', 'r', limits, 10);
        assertEqual([rejected.accepted, await store.settleOnce(rejected, 0, OTHER_RECEIPT)], [false, false]);
      }));

    it('S32: a lease charges as many equal requests as fit every window, in one step, and none while the account is blocked', () =>
      withStore(async (store) => {
        if (store.lease === undefined) return;
        const limits = windowSet(['9/1m'], ['20/1d'], 'account');
        const remaining = async (): Promise<number[]> =>
          (await store.peek('a', 'r', limits)).map((window) => window.remaining);
        const lease = async (cost: number, requests: number, route = 'r'): Promise<unknown[]> => {
          const { decision, granted } = await (store as Required<LimitStore>).lease('a', route, limits, cost, requests);
          return [decision.accepted, decision.cost, decision.trace.map((window) => window.remaining), granted];
        };
        // The decision is about the first request alone.
        assertEqual(
          [await lease(2, 3), await remaining()],
          [
            [true, 2, [7, 18], 3],
            [3, 14],
          ],
        );
        assertEqual(
          [await lease(2, 3), await remaining()],
          [
            [true, 2, [1, 12], 1],
            [1, 12],
          ],
        );
        assertEqual(
          [await lease(2, 3), await remaining()],
          [
            [false, 2, [1], 0],
            [1, 12],
          ],
        );
        assertEqual(
          [await lease(1, MAX_LEASED_REQUESTS, 's'), await remaining()],
          [
            [true, 1, [8, 11], 9],
            [1, 3],
          ],
        );
        await store.block?.({ account: 'a' }, { forMs: 1_000 });
        if (store.block !== undefined)
          assertEqual(
            [await lease(1, 5), await remaining()],
            [
              [false, 1, [], 0],
              [1, 3],
            ],
          );
      }));

    it('S32: simultaneous leases and requests charge together what fits', () =>
      withStore(async (store) => {
        if (store.lease === undefined) return;
        const limits = windowSet(['30/1m'], ['50/1d']);
        const { lease } = store as Required<LimitStore>;
        const granted = await Promise.all(
          [7, 1, 7, 1, 7, 1, 7, 1].map(async (requests) =>
            requests === 1
              ? Number((await store.consume('a', 'r', limits, 1)).accepted)
              : (await lease.call(store, 'a', 'r', limits, 1, requests)).granted,
          ),
        );
        assertEqual(
          granted.reduce((sum, each) => sum + each),
          30,
        );
        assertEqual(
          (await store.peek('a', 'r', limits)).map((window) => window.remaining),
          [0, 20],
        );
      }));

    it('S32: what a process did not use is given back once, to the windows that were charged, until a given time', () =>
      withStore(async (store, clock) => {
        if (store.lease === undefined || store.settleOnce === undefined) return;
        const limits = windowSet(['9/1s'], ['20/1m'], 'account');
        const remaining = async (): Promise<number[]> =>
          (await store.peek('a', 'r', limits)).map((window) => window.remaining);
        const grant = await store.lease('a', 'r', limits, 1, 5);
        const until = grant.decision.decidedAt + 500;
        assertEqual([await store.settleOnce(furtherOf(grant), 1, RECEIPT, until), await remaining()], [true, [7, 18]]);
        assertEqual([await store.settleOnce(furtherOf(grant), 1, RECEIPT, until), await remaining()], [false, [7, 18]]);
        clock.advance(500);
        // The last moment, and then one later: the receipt need not be remembered there.
        assertEqual([await store.settleOnce(furtherOf(grant), 1, RECEIPT, until), await remaining()], [false, [7, 18]]);
        assertEqual(
          [await store.settleOnce(grant.decision, 0, OTHER_RECEIPT, until), await remaining()],
          [true, [8, 19]],
        );
        const next = await store.lease('a', 'r', limits, 2, 2);
        clock.advance(1);
        assertEqual(
          [await store.settleOnce(furtherOf(next), 0, LATE_RECEIPT, until), await remaining()],
          [false, [4, 15]],
        );
        clock.advance(499);
        // Only the longer window is left.
        assertEqual(
          [await store.settleOnce(furtherOf(next), 0, LATE_RECEIPT, clock.now()), await remaining()],
          [true, [9, 17]],
        );
      }));

    it('S21: a block rejects before every window, charges nothing, and ends by itself or when it is lifted', () =>
      withStore(async (store, clock) => {
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
        assertEqual(
          (await store.peek('a', 'r', minute)).map(({ remaining }) => remaining),
          [4, 8],
        );
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
      }));

    it('S36: a block with a fresh start deletes the counters of exactly its target, in every window', () =>
      withStore(async (store, clock) => {
        if (store.block === undefined || store.unblock === undefined) return;
        const limits = windowSet(['3/1m'], ['5/1d'], 'account');
        const remaining = async (account = 'a', route = 'r'): Promise<number[]> =>
          (await store.peek(account, route, limits)).map((window) => window.remaining);
        for (const account of ['a', 'b'])
          for (const route of ['r', 's']) await store.consume(account, route, limits, 1);
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
      }));

    it(
      'two different accounts or routes are never confused, whatever their characters',
      () =>
        withStore(async (store) => {
          const once = windowSet([], ['1/1d']);
          const names = [
            '',
            '%',
            '{',
            '}',
            '{}',
            'a}',
            'a:r',
            ':',
            '__proto__',
            'ü',
            '\ud800',
            '\udfff',
            '*',
            'a\u0000',
            '%0025',
            'x'.repeat(65_536),
          ];
          for (const account of names)
            for (const route of names) assertEqual((await store.consume(account, route, once, 1)).accepted, true);
          for (const account of names)
            for (const route of names) assertEqual((await store.consume(account, route, once, 1)).accepted, false);
        }),
      60_000,
    );
  });
}

const RECEIPT = 'aaaaaaaaaaaaaaaaaaaaaa';
const OTHER_RECEIPT = 'bbbbbbbbbbbbbbbbbbbbbb';
const LATE_RECEIPT = 'cccccccccccccccccccc-_';

/** The decision as a receipt brings it to another process. */
function copyOf({ account, route, cost, decidedAt, trace, windowSet }: Decision, ofRoute = route): Decision {
  const limitOf = (name: string): Limit =>
    trace.filter(({ limit }) => limit === name).map(({ durationMs }) => ({ max: 1, durationMs }));
  const windows = createWindowSet(limitOf('route'), limitOf('all-methods'), windowSet.allMethodsScope);
  const counters = trace.flatMap(({ startedAt = NEVER }) => [startedAt, cost]);
  return new Decision(account, ofRoute, windows, cost, decidedAt, FITS, counters);
}

function windowSet(route: string[], allMethods: string[], scope?: AllMethodsScope): WindowSet {
  return createWindowSet(parseLimit(route), parseLimit(allMethods), scope);
}
