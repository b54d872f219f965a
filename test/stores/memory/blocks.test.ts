import { expect, it } from 'vitest';
import { StoreFullError } from '../../../src/base/errors.ts';
import { Blocks } from '../../../src/stores/memory/blocks.ts';
import { createMemoryStore } from '../../../src/stores/memory/limits.ts';

const LONG = { forMs: 1_000_000, reason: undefined };
const SHORT = { forMs: 5, reason: undefined };

it('S21: of two blocks the one that ends last counts; of two that end together, that of the account', () => {
  const blocks = new Blocks(10);
  const [account, route] = [{ account: 'a' }, { account: 'a', route: 'r' }];
  blocks.set(route, { forMs: 2_000, reason: 'route' }, 0);
  for (const [forMs, reason] of [
    [1_000, 'route'],
    [2_000, 'account'],
    [3_000, 'account'],
  ] as const) {
    blocks.set(account, { forMs, reason: 'account' }, 0);
    expect(blocks.find(route, 0)?.reason).toBe(reason);
  }
});

it('S21: the size is the number of blocks of accounts and of routes', () => {
  const blocks = new Blocks(10);
  for (const target of [{ account: 'a' }, { account: 'a', route: 'r' }, { account: 'b' }]) blocks.set(target, LONG, 0);
  blocks.delete({ account: 'a' });
  blocks.delete({ account: 'a' });
  expect(blocks.size).toBe(2);
});

it('S21: blocks that are over are swept from two accounts per new block, so that none takes long', () => {
  const blocks = new Blocks(1_000);
  for (let i = 0; i < 100; i++) blocks.set({ account: `${i}` }, SHORT, 0);
  blocks.set({ account: 'new' }, SHORT, 10);
  expect(blocks.size).toBe(100 - 2 + 1);
});

it('S18, S21: a full store finds the block that is over among 256 accounts, before it refuses a new one', () => {
  const blocks = new Blocks(100);
  for (let i = 0; i < 100; i++) blocks.set({ account: `${i}` }, i === 50 ? SHORT : LONG, 0);
  blocks.set({ account: 'new' }, LONG, 10);
  expect(blocks.size).toBe(100);
  expect(() => blocks.set({ account: 'another' }, LONG, 10)).toThrow(StoreFullError);
});

it('S18, S21: a full store finds blocks that are over behind 300 that are not, at the second attempt', () => {
  const blocks = new Blocks(310);
  for (let i = 0; i < 300; i++) blocks.set({ account: `long ${i}` }, LONG, 0);
  let refused = 0;
  for (let now = 1; now <= 1_000; now++) {
    try {
      blocks.set({ account: `${now}` }, SHORT, now);
    } catch {
      refused++;
      // The first attempt has checked 256 accounts, and this one checks the others.
      blocks.set({ account: `${now}` }, SHORT, now);
    }
  }
  expect(refused).toBeLessThan(500);
});

it('S21: nothing is blocked in a store that has never had a block', () => {
  const store = createMemoryStore();
  store.unblock({ account: 'a' });
  expect(store.blocked({ account: 'a' })).toBeUndefined();
});
