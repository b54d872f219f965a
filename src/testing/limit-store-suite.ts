import type FastCheck from 'fast-check';
import type { LimitStore } from '../core/ports.ts';
import { createArbitraries } from './arbitraries.ts';
import { assertEqual } from './assert-equal.ts';
import { BLOCK_CASES } from './block-cases.ts';
import { COOLDOWN_CASES } from './cooldown-cases.ts';
import { createFakeClock, type FakeClock } from './fake-clock.ts';
import { HistoryRun } from './history-run.ts';
import { LEASE_CASES } from './lease-cases.ts';
import { remainingOf, windowSet } from './limit-cases.ts';
import { SETTLE_CASES } from './settle-cases.ts';
import { SLOT_CASES } from './slot-cases.ts';

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
        assertEqual(await remainingOf(store, tight), [3, 0]);
      }));

    for (const [rule, run] of Object.entries({
      ...SETTLE_CASES,
      ...LEASE_CASES,
      ...BLOCK_CASES,
      ...COOLDOWN_CASES,
      ...SLOT_CASES,
    }))
      it(rule, () => withStore(run));

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
