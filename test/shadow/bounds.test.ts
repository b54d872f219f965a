/** S27: a candidate is bounded, however long it runs and whatever its store does. */
import { expect, it } from 'vitest';
import type { LimitStore } from '../../src/core/ports.ts';
import { createLimiter } from '../../src/limits/limiter.ts';
import { type ShadowOptions, withShadow } from '../../src/shadow/shadow.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';
import { heapUsed } from '../support/heap.ts';

const turn = () => new Promise((resolve) => setImmediate(resolve));
const heapBytes = async () => {
  await turn();
  return heapUsed();
};

function start(options: Partial<ShadowOptions>) {
  const store = createMemoryStore({ maxKeys: 200_000 });
  const current = createLimiter({ store, limits: { allMethods: ['9/1s'] }, validate: false });
  const limits = { allMethods: ['0/1h'] };
  return withShadow(current, { limits, store: createMemoryStore(), ...options });
}

it('a hung store for a million requests: memory is flat, all are counted, and the places come back', async () => {
  const MILLION = 1_000_000;
  const store = createMemoryStore();
  let isHung = true;
  let calls = 0;
  const consume: LimitStore['consume'] = (...given) => {
    calls++;
    return isHung ? new Promise(() => {}) : Promise.resolve(store.consume(...given));
  };
  const limiter = start({ store: Object.assign(createMemoryStore(), { consume }), timeoutMs: 20 });
  const ask = async (count: number) => {
    for (let i = 1; i <= count; i++) {
      limiter.consumeSync({ account: 'a', route: 'r' });
      if (i % 1_000 === 0) await turn();
    }
  };
  await ask(MILLION / 10);
  const before = await heapBytes();
  await ask(MILLION - MILLION / 10);
  expect((await heapBytes()) - before).toBeLessThan(4_000_000);
  await limiter.shadow.idle();
  const { total, byRoute } = limiter.shadow.figures();
  expect(total.dropped + total.failed).toBe(MILLION);
  expect(byRoute.r).toEqual(total);
  expect(total.failed).toBe(calls);
  // Either 1,000 calls hang until their deadline, or one at a time tests the store.
  expect(calls).toBeLessThan(2_000);
  isHung = false;
  await ask(1);
  await limiter.shadow.idle();
  for (let i = 0; i < 1_000; i++) limiter.consumeSync({ account: 'a', route: 'r' });
  await limiter.shadow.idle();
  const after = limiter.shadow.figures().total;
  expect(after.onlyCandidate + after.both).toBe(1_001);
  expect(after.dropped).toBe(total.dropped);
});

it('20,000 accounts that rotate over 2,000 routes: the figures list 1,000 of each, and count the rest', async () => {
  const limiter = start({ maxUnderWay: 1_000_000 });
  const NAMES = ['__proto__', 'constructor', 'toString', ''];
  for (let i = 0; i < 20_000; i++) {
    const name = NAMES[i];
    limiter.consumeSync({ account: name ?? `a${i}`, route: name ?? `r${i % 2_000}` });
  }
  await limiter.shadow.idle();
  const { total, byRoute, newlyRejected, unlisted } = limiter.shadow.figures();
  expect([total.onlyCandidate, Object.keys(byRoute).length, newlyRejected.length, unlisted]).toEqual([
    20_000, 1_000, 1_000, 19_000,
  ]);
  expect(newlyRejected.slice(0, NAMES.length).map(({ account }) => account)).toEqual(NAMES);
  for (const name of NAMES) expect(Object.getOwnPropertyDescriptor(byRoute, name)?.value.onlyCandidate).toBe(1);
  expect(Object.getPrototypeOf(byRoute)).toBe(Object.prototype);
});
