import { describe, expect, it } from 'vitest';
import { createMemoryClaimStore } from '../../../src/stores/memory/claims.ts';
import { createFakeClock } from '../../../src/testing/fake-clock.ts';

const RETENTION_MS = 10_000;

function setUp() {
  const clock = createFakeClock(1_000_000);
  const store = createMemoryClaimStore({ clock, maxKeys: 10 });
  const command = { fingerprint: 'f', token: 'a', retentionMs: RETENTION_MS, leaseMs: 1_000 };
  let keys = 0;
  /** Claims new keys until the store refuses one, and returns how many it has claimed. */
  const claimAll = (scope: string): number => {
    for (let claimed = 0; ; claimed++) {
      try {
        store.begin({ scope, key: `${keys++}` }, { ...command, onOrphan: 'reject', dispatch: true });
      } catch {
        return claimed;
      }
    }
  };
  return { clock, store, claimAll };
}

describe('setShares()', () => {
  it('I13: a scope with more keys than it may have now keeps them, and gets no new ones until they expire', () => {
    const { clock, store, claimAll } = setUp();
    expect(claimAll('A')).toBe(5);
    store.setShares({ maxClaimsPerScope: 2 });
    expect([claimAll('A'), claimAll('B')]).toEqual([0, 2]);
    expect(store.stats()).toMatchObject({ keys: 7, maxKeys: 10 });
    clock.advance(RETENTION_MS);
    expect([claimAll('A'), claimAll('B')]).toEqual([2, 2]);
  });

  it('I13: a scope gets the default share again, and a guarantee applies at once', () => {
    const { store, claimAll } = setUp();
    store.setShares({ maxClaimsPerScope: 2 });
    store.setShares({ minClaimsPerScope: 1 });
    expect([claimAll('A'), claimAll('B'), claimAll('C')]).toEqual([5, 1, 1]);
  });

  it('shares that do not fit are refused, and the earlier ones stay', () => {
    const { store, claimAll } = setUp();
    expect(() => store.setShares({ maxClaimsPerScope: 11 })).toThrow(/^maxClaimsPerScope: /);
    expect(() => store.setShares({ maxClaimsPerScope: 3, minClaimsPerScope: 4 })).toThrow(/^minClaimsPerScope: /);
    expect(claimAll('A')).toBe(5);
  });
});

it('a memory store of claims is synchronous', () => {
  expect(createMemoryClaimStore().synchronous).toBe(true);
});

it('an unknown option is refused with its place', () => {
  expect(() => createMemoryClaimStore({ maxkeys: 1 } as object)).toThrow(/^options\.maxkeys: unknown option/);
});
