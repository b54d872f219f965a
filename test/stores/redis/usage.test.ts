/** `usage` in Redis: what is read in one turn of the event loop travels together. */
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { createLimiter } from '../../../src/index.ts';
import { createRedisStore } from '../../../src/stores/redis/limits.ts';
import { windowSetFrom } from '../../support/window-set.ts';

const client = new Redis({ port: inject('redis').port, host: '127.0.0.1' });
beforeAll(() => client.ping());
afterAll(() => client.disconnect());

let prefixes = 0;
const newStore = () => createRedisStore(client, { prefix: `usage-${process.pid}-${prefixes++}`, deadlineMs: 10_000 });

it('S14: the peeks of one turn travel together, and each is exact', async () => {
  const store = newStore();
  const windowSet = windowSetFrom(['3/1h'], ['5/1d']);
  for (let i = 0; i < 4; i++) await store.charge('a', `r${i}`, windowSet, i + 1);
  const { calls } = store.stats();
  const peeks = await Promise.all([0, 1, 2, 3, 3].map((i) => store.peek('a', `r${i}`, windowSet)));
  expect(peeks.map(([first]) => first?.remaining)).toEqual([2, 1, 0, 0, 0]);
  expect(store.stats().calls).toBe(calls + 1);
});

it('S20: the routes of an account are read in one turn', async () => {
  const store = newStore();
  const routes = Object.fromEntries(Array.from({ length: 10 }, (_, i) => [`r${i}`, ['3/1m']]));
  const limiter = createLimiter({ store, limits: { allMethods: ['9/1h'], routes }, validate: false });
  await limiter.consume({ account: 'a', route: 'r7' });
  const { calls } = store.stats();
  const { routes: read } = await limiter.usage({ account: 'a', routes: ['s', 't', 'u', 'v'] });
  expect(read.map(({ windows }) => windows.map(({ remaining }) => remaining))).toEqual(
    Array.from({ length: 14 }, (_, i) => (i === 7 ? [2, 8] : i < 10 ? [3, 9] : [9])),
  );
  // Each route with limits of its own has a window set of its own. The calls are sent together.
  expect(store.stats().calls - calls).toBe(11);
});
