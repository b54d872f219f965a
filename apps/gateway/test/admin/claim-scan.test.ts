/** How a scan of claims asks the store. */

import { StoreUnavailableError } from 'headgate';
import { createMemoryClaimStore } from 'headgate/memory';
import type { ClaimPage, ClaimStore, ListedClaim } from 'headgate/stores';
import { describe, expect, it } from 'vitest';
import { scanClaims } from '../../src/admin/claim-scan.ts';
import { InputError } from '../../src/api/input.ts';
import type { Refusal } from '../../src/exchange/refusal.ts';

const claimOf = (key: string, state: ListedClaim['state']): ListedClaim => ({
  scope: 'app_1',
  key,
  state,
  generation: 1,
  dispatched: state === 'in_progress',
  inherited: false,
  leaseMs: 0,
  keptMs: 1,
  status: undefined,
  valueBytes: undefined,
});

/** A store whose pages are full of claims of a state, and the counts that it was asked for. */
function endlessStore(state: ListedClaim['state']) {
  const counts: number[] = [];
  const list = (_cursor: string | undefined, count: number): ClaimPage => {
    const claims = Array.from({ length: count }, (_, i) => claimOf(`k${i}`, state));
    counts.push(count);
    return { claims, looked: count, next: 'more' };
  };
  return { store: { ...createMemoryClaimStore(), list } as ClaimStore, counts };
}

const sum = (numbers: readonly number[]): number => numbers.reduce((all, number) => all + number, 0);

describe('a page of a scan', () => {
  it.each([
    [500, 1_000],
    [100, 1_000],
    [7, 70],
    [1, 10],
  ])('of at most %i claims looks at %i keys if none of them is wanted', async (limit, looked) => {
    const { store, counts } = endlessStore('completed');
    const page = await scanClaims(store, { state: 'orphan', limit });
    expect(page).toMatchObject({ claims: [], looked, next: expect.any(String) });
    expect(sum(counts)).toBe(looked);
  });

  it('ends when it is full', async () => {
    const { store, counts } = endlessStore('in_progress');
    expect(await scanClaims(store, { state: 'orphan', limit: 30 })).toMatchObject({ looked: 30 });
    expect(counts).toEqual([30]);
  });

  it('a store without list: what to do instead', async () => {
    const store = { ...createMemoryClaimStore(), list: undefined } as unknown as ClaimStore;
    const refusal = (await scanClaims(store, { limit: 1 })) as Refusal;
    expect(refusal.problem('id')).toMatchObject({
      status: 409,
      detail: expect.stringMatching(/cannot list claims\. Look .* GET \/v1\/claims/),
    });
  });

  it('a cursor of another store is the fault of the request, and an outage is not', async () => {
    const { next } = (await scanClaims(endlessStore('free').store, { limit: 1 })) as { next: string };
    await expect(scanClaims(createMemoryClaimStore(), { limit: 1, cursor: next })).rejects.toThrow(InputError);
    const list = () => Promise.reject(new StoreUnavailableError(new Error('away')));
    const store = { ...createMemoryClaimStore(), list } as ClaimStore;
    await expect(scanClaims(store, { limit: 1 })).rejects.toThrow(StoreUnavailableError);
  });
});
