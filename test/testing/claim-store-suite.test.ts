import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ClaimPage, ClaimStore, ClaimView } from '../../src/core/ports.ts';
import { createMemoryClaimStore, type MemoryClaimStore } from '../../src/stores/memory/claims.ts';
import { CLAIM_CASES } from '../../src/testing/claim-cases.ts';
import { claimStoreSuite } from '../../src/testing/claim-store-suite.ts';
import type { FakeClock } from '../../src/testing/fake-clock.ts';
import { createWrongClaimStore, FAULTS } from './wrong-claim-stores.ts';

type Outcome = 'passed' | Error;

/** Runs the whole suite as a test runner does, and returns the outcome of each test. */
async function runSuite(create: (clock: FakeClock) => ClaimStore, histories: number): Promise<Map<string, Outcome>> {
  const tests: [string, () => Promise<void>][] = [];
  const runner = {
    describe: (_: string, define: () => void) => define(),
    it: (name: string, run: () => Promise<void>) => void tests.push([name, run]),
  };
  // A fixed seed, so that it is not a matter of luck whether the histories find a fault.
  fc.configureGlobal({ seed: 4 });
  try {
    claimStoreSuite(runner, fc, { name: 'x', create, histories });
    const outcomes = new Map<string, Outcome>();
    for (const [name, run] of tests) {
      const outcome = await run().then(
        () => 'passed' as const,
        (error: Error) => error,
      );
      outcomes.set(name, outcome);
    }
    return outcomes;
  } finally {
    fc.resetConfigureGlobal();
  }
}

const failed = (outcomes: Map<string, Outcome>): string[] =>
  [...outcomes].filter(([, outcome]) => outcome !== 'passed').map(([name]) => name);
const variantOf = (name: string): string => name.split(': ')[0] as string;

describe('the claim store suite', () => {
  it('passes for a correct store', async () => {
    expect(failed(await runSuite((clock) => createWrongClaimStore(clock), 200))).toEqual([]);
  });

  it('has a case for every wrong store, and a wrong store for every case', () => {
    const covered = Object.keys(CLAIM_CASES)
      .map(variantOf)
      .filter((name) => !/^I\d/.test(name));
    expect(Object.keys(FAULTS).sort()).toEqual(covered.sort());
  });

  it.each(Object.keys(FAULTS))('%s fails its case and the random histories', async (variant) => {
    const failures = failed(await runSuite((clock) => createWrongClaimStore(clock, FAULTS[variant]), 300));
    expect(failures.map(variantOf)).toContain(variant);
    expect(failures.filter((name) => name.startsWith('replies as the naive model does'))).toHaveLength(1);
  });

  /** Wrong lists. Each is that of the memory store with one fault. */
  const LISTS: Record<string, (store: MemoryClaimStore, cursor: string | undefined, count: number) => unknown> = {
    'leaves out a claim'(store, cursor, count) {
      const page = store.list(cursor, count);
      return { ...page, claims: page.claims.slice(1) };
    },
    'shows the owner'(store, cursor, count) {
      const page = store.list(cursor, count);
      const claims = page.claims.map((claim) => ({ ...claim, owner: store.inspect(claim)?.owner }));
      return { ...page, claims };
    },
    'accepts every cursor'(store, cursor, count) {
      return cursor === undefined || cursor.length > 30 ? store.list(cursor, count) : store.list(undefined, count);
    },
    'renews what it lists'(store, cursor, count) {
      const page = store.list(cursor, count);
      for (const claim of page.claims) {
        const { owner: token, ...view } = store.inspect(claim) as ClaimView;
        store.extend(claim, { ...view, token, leaseMs: 1_000, retentionMs: 100_000 });
      }
      return page;
    },
  };

  it.each(Object.keys(LISTS))('a list that %s fails', async (name) => {
    const outcomes = await runSuite((clock) => {
      const right = createMemoryClaimStore({ clock });
      const list = (cursor: string | undefined, count: number) => LISTS[name]?.(right, cursor, count) as ClaimPage;
      // The methods of the right store need it as their `this`.
      return new Proxy(right, {
        get: (store, property) => {
          if (property === 'list') return list;
          const value = store[property as keyof MemoryClaimStore] as unknown;
          return typeof value === 'function' ? value.bind(store) : value;
        },
      });
    }, 1);
    expect(failed(outcomes).length).toBeGreaterThan(0);
    expect(failed(outcomes).filter((title) => !title.startsWith('list'))).toEqual([]);
  });

  it('a store whose begin is not atomic fails the races', async () => {
    const failures = failed(
      await runSuite((clock) => {
        const inner = createWrongClaimStore(clock);
        return {
          ...inner,
          synchronous: false,
          // It reads, waits, and replies by what it has read. So all simultaneous begins see an empty store.
          async begin(id, command) {
            const before = await inner.inspect(id);
            const reply = await inner.begin(id, command);
            return before === undefined
              ? { kind: 'claimed', generation: 1, inherited: false, dispatched: command.dispatch }
              : reply;
          },
        };
      }, 1),
    );
    expect(failures.filter((name) => name.startsWith('I5'))).toHaveLength(1);
  });
});
