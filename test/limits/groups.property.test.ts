/** S31: random histories with groups against a naive model, and concurrent requests on a store that may fail to undo. */
import fc from 'fast-check';
import { NIGHTLY } from 'headgate-testbed/nightly';
import { expect, it } from 'vitest';
import type { MaybePromise } from '../../src/base/maybe-promise.ts';
import { decorateStore } from '../../src/core/decorate-store.ts';
import type { LimitStore } from '../../src/core/ports.ts';
import { createLimiter } from '../../src/index.ts';
import { groupAccount } from '../../src/limits/index.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';
import { createFakeClock } from '../../src/testing/fake-clock.ts';

const RUNS = NIGHTLY ? 20_000 : 120;
const START = 1_000_000;

interface Window {
  start: number;
  count: number;
}

/** Windows by subject and duration, as a person would count them: nothing is charged before everything fits. */
class NaiveGroups {
  readonly #windows = new Map<string, Window>();

  constructor(readonly limits: Readonly<Record<string, readonly (readonly [max: number, ms: number])[]>>) {}

  active(subject: string, ms: number, now: number): Window | undefined {
    const window = this.#windows.get(`${subject} ${ms}`);
    return window !== undefined && now < window.start + ms ? window : undefined;
  }

  /** Returns the index of the subject that rejects, or -1. */
  consume(subjects: readonly (readonly [subject: string, kind: string])[], cost: number, now: number): number {
    const rejecting = subjects.findIndex(([subject, kind]) =>
      this.limits[kind]?.some(([max, ms]) => (this.active(subject, ms, now)?.count ?? 0) + cost > max),
    );
    if (rejecting >= 0) return rejecting;
    for (const [subject, kind] of subjects)
      for (const [, ms] of this.limits[kind] ?? []) {
        const window = this.active(subject, ms, now) ?? { start: now, count: 0 };
        window.count += cost;
        this.#windows.set(`${subject} ${ms}`, window);
      }
    return -1;
  }
}

const MODEL_LIMITS = {
  account: [[4, 20]],
  customer: [
    [5, 30],
    [8, 100],
  ],
  key: [[6, 25]],
} as const;
const textOf = (windows: readonly (readonly [number, number])[]): string[] =>
  windows.map(([max, ms]) => `${max}/${ms}ms`);
const LIMITS = {
  default: textOf(MODEL_LIMITS.account),
  groups: { customer: textOf(MODEL_LIMITS.customer), key: textOf(MODEL_LIMITS.key) },
};

const request = fc.record({
  account: fc.constantFrom('a', 'b', 'c'),
  groups: fc.record({ customer: fc.constantFrom('x', 'y'), key: fc.constantFrom('k') }, { requiredKeys: [] }),
  cost: fc.constantFrom(1, 1, 1, 2, 3),
  waitMs: fc.constantFrom(0, 0, 1, 5, 20),
});

it('S31: decides as a naive model does, and a rejection leaves every counter as it was, its start included', async () => {
  let rejections = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(request, { minLength: 5, maxLength: 40 }), fc.boolean(), async (requests, isSync) => {
      const clock = createFakeClock(START);
      const limiter = createLimiter({ store: createMemoryStore({ clock }), limits: LIMITS, logger: false });
      const model = new NaiveGroups(MODEL_LIMITS);
      const subjects = [
        'a',
        'b',
        'c',
        ...['x', 'y'].map((id) => groupAccount('customer', id)),
        groupAccount('key', 'k'),
      ];
      for (const { account, groups, cost, waitMs } of requests) {
        clock.advance(waitMs);
        const given = { account, groups, cost };
        const decision = isSync ? limiter.consumeSync(given) : await limiter.consume(given);
        const names = Object.entries(groups) as [string, string][];
        const parts = [
          [account, 'account'] as const,
          ...names.map(([name, id]) => [groupAccount(name, id), name] as const),
        ];
        const rejecting = model.consume(parts, cost, clock.now());
        if (rejecting >= 0) rejections++;
        expect([decision.accepted, decision.rejectedBy]).toEqual([rejecting < 0, parts[rejecting]?.[1]]);
        for (const subject of subjects) {
          const kind = subject.startsWith('group:customer')
            ? 'customer'
            : subject.startsWith('group')
              ? 'key'
              : 'account';
          const expected = MODEL_LIMITS[kind].map(([max, ms]) => {
            const window = model.active(subject, ms, clock.now());
            return [max - (window?.count ?? 0), window?.start];
          });
          const windows = await limiter.peek({ account: subject });
          expect(windows.map(({ remaining, startedAt }) => [remaining, startedAt])).toEqual(expected);
        }
      }
    }),
    { numRuns: RUNS },
  );
  expect(rejections).toBeGreaterThan(RUNS);
});

it('S31: the sum over 50 accounts of one customer never exceeds its window, also if processes die before an undo', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(7), { minLength: 120, maxLength: 120 }), fc.boolean(), async (turns, dies) => {
      const inner = createMemoryStore({ clock: createFakeClock(START) });
      let calls = 0;
      let lost = 0;
      const later = async <Result>(run: () => MaybePromise<Result>): Promise<Result> => {
        for (let left = turns[calls++ % turns.length] as number; left > 0; left--) await undefined;
        return run();
      };
      const store = decorateStore(inner, {
        consume: (consume) => (account, route, windowSet, cost) =>
          later(() => {
            const decision = consume(account, route, windowSet, cost);
            const [window] = inner.peek(account, route, windowSet);
            expect((window?.max ?? 0) - (window?.remaining ?? 0)).toBeLessThanOrEqual(window?.max ?? 0);
            return decision;
          }),
        undo: (undo) => (decision) =>
          later(() => {
            if (!dies || calls % 3 > 0) return undo(decision);
            lost++;
            throw new Error('the process died');
          }),
      });
      const limiter = createLimiter({
        store: { ...store, synchronous: false } as LimitStore,
        limits: { default: ['2/1m'], groups: { customer: ['30/1h'] } },
        logger: false,
      });
      const accounts = Array.from({ length: 100 }, (_, i) => `acc_${i % 50}`);
      const groups = { customer: 'cus_7' };
      const decisions = await Promise.all(accounts.map((account) => limiter.consume({ account, groups })));
      const accepted = decisions.filter((decision) => decision.accepted);
      const [customer] = await limiter.peek({ account: groupAccount('customer', 'cus_7') });
      const used = 30 - (customer?.remaining ?? 0);
      expect([accepted.length <= used, used <= 30]).toEqual([true, true]);
      if (lost > 0) return;
      expect([used, accepted.length]).toEqual([30, 30]);
      for (const account of new Set(accounts)) {
        const own = accepted.filter((decision) => decision.account === account).length;
        const [window] = await limiter.peek({ account });
        expect([window?.remaining, window?.startedAt]).toEqual([2 - own, own === 0 ? undefined : START]);
      }
    }),
    { numRuns: RUNS / 10 },
  );
});
