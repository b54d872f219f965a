import { expect, it } from 'vitest';
import type { ClaimRecord } from '../../../src/core/claim.ts';
import { viewOf } from '../../../src/stores/memory/claim-views.ts';
import { createMemoryClaimStore, type MemoryClaimStore } from '../../../src/stores/memory/claims.ts';

it('S15: only a claim in progress has a lease, also after the clock was set back', () => {
  const record = { leaseUntil: 1_000, keptUntil: 9_000 } as ClaimRecord;
  expect(viewOf({ ...record, state: 'in_progress' }, 400)).toMatchObject({ leaseMs: 600, keptMs: 8_600 });
  expect(viewOf({ ...record, state: 'in_progress' }, 1_400).leaseMs).toBe(0);
  expect(viewOf({ ...record, state: 'completed' }, 400).leaseMs).toBe(0);
});

/** A store with five claims. */
function storeOfFive(): MemoryClaimStore {
  const store = createMemoryClaimStore({ maxKeys: 10 });
  const command = { fingerprint: 'f', token: 'a', retentionMs: 60_000, leaseMs: 1_000, dispatch: true } as const;
  for (let key = 0; key < 5; key++) store.begin({ scope: 's', key: `${key}` }, { ...command, onOrphan: 'reject' });
  return store;
}

it('a page has so many claims, and the next page goes on after it', () => {
  const store = storeOfFive();
  let cursor: string | undefined;
  for (const keys of [['0', '1'], ['2', '3'], ['4']]) {
    const { claims, looked, next } = store.list(cursor, 2);
    expect([claims.map(({ key }) => key), looked]).toEqual([keys, keys.length]);
    cursor = next;
  }
  expect(cursor).toBeUndefined();
});

it('a cursor behind the last part is that of an empty page', () => {
  const store = storeOfFive();
  const { next } = store.list(undefined, 2);
  expect(store.list(next?.replace('.0.', '.10.'), 2)).toEqual({ claims: [], looked: 0, next: undefined });
});

it('the cursor of another process begins anew, and a text that is not a cursor is refused', () => {
  const { next } = storeOfFive().list(undefined, 2);
  expect(next).toMatch(/^[\w-]+\.0\.2$/);
  expect(
    storeOfFive()
      .list(next, 2)
      .claims.map(({ key }) => key),
  ).toEqual(['0', '1']);
  for (const text of ['another text', `!${next}`, `${next}!`])
    expect(() => storeOfFive().list(text, 2)).toThrow(/cursor/);
});
