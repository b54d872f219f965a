import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { startCpuTimer } from 'headgate-testbed/cpu-timer';
import { startTcpProxy } from 'headgate-testbed/tcp-proxy';
import { Redis } from 'ioredis';
import { describe, expect, inject, it } from 'vitest';
import { monotonicClock } from '../../../src/core/clock.ts';
import { Decision } from '../../../src/core/decision.ts';
import { parseLimit } from '../../../src/core/limit.ts';
import { createWindowSet, type WindowSet } from '../../../src/core/window-set.ts';
import { createRedisStore, type RedisStore } from '../../../src/stores/redis/limits.ts';
import { Denials } from '../../../src/stores/shared/denials.ts';
import { redisForFile } from '../../support/ioredis-for-file.ts';

const { port } = inject('redis');
const client = redisForFile();

let stores = 0;
const newPrefix = (): string => `denials-${process.pid}-${stores++}`;
const newStore = (prefix = newPrefix(), denyCacheMaxMs = 60_000): RedisStore =>
  createRedisStore(client, { prefix, denyCacheMaxMs, deadlineMs: 10_000 });
const windowSetOf = (...windows: string[]): WindowSet => createWindowSet([], parseLimit(windows));
const consume = (store: RedisStore, windowSet: WindowSet, cost = 1): Promise<Decision> | Decision =>
  store.consume('acc', 'route', windowSet, cost);

/** Uses up the only request of a plan, and checks that the store repeats the rejection without asking Redis. */
async function denied(store: RedisStore, windowSet: WindowSet): Promise<{ spent: Decision }> {
  const spent = await consume(store, windowSet);
  expect(spent.accepted).toBe(true);
  expect((await consume(store, windowSet)).accepted).toBe(false);
  expect(store.stats().localRejections).toBe(0);
  expect((await consume(store, windowSet)).accepted).toBe(false);
  expect(store.stats().localRejections).toBe(1);
  return { spent };
}

describe('cached rejections', () => {
  it('S20: are repeated without a call', async () => {
    const store = newStore();
    const windowSet = windowSetOf('1/1h');
    await denied(store, windowSet);
    const { calls } = store.stats();
    for (let i = 0; i < 100; i++) expect(consume(store, windowSet)).toBeInstanceOf(Decision);
    expect(store.stats()).toMatchObject({ calls, localRejections: 101, degraded: 0 });
  });

  it('S7: show a reset that gets shorter, and a request is accepted when it is over', async () => {
    const store = newStore();
    const windowSet = windowSetOf('1/2s');
    await denied(store, windowSet);
    const first = (await consume(store, windowSet)).shown?.resetMs as number;
    await sleep(200);
    const second = (await consume(store, windowSet)).shown?.resetMs as number;
    expect(first - second).toBeGreaterThan(150);
    expect(second).toBeGreaterThan(0);
    await sleep(second + 1);
    expect((await consume(store, windowSet)).accepted).toBe(true);
  });

  it('S7: show a reset that is never too short, even on a slow connection', async () => {
    const proxy = await startTcpProxy(port);
    const slow = new Redis({ port: proxy.port, host: '127.0.0.1' });
    try {
      await once(slow, 'ready');
      const store = createRedisStore(slow, { prefix: newPrefix(), denyCacheMaxMs: 60_000, deadlineMs: 10_000 });
      const windowSet = windowSetOf('1/1h');
      await consume(store, windowSet);
      proxy.delayRequestsMs = 300;
      await consume(store, windowSet);
      const shown = (await consume(store, windowSet)).shown?.resetMs as number;
      proxy.delayRequestsMs = 0;
      const truly = (await store.peek('acc', 'route', windowSet))[0]?.resetMs as number;
      expect(store.stats().localRejections).toBe(1);
      expect(shown).toBeGreaterThanOrEqual(truly);
    } finally {
      slow.disconnect();
      await proxy.close();
    }
  });

  it('S9: with max 0 always show the whole duration as the reset', async () => {
    const store = newStore();
    const windowSet = windowSetOf('0/1h');
    for (let i = 0; i < 3; i++) {
      expect((await consume(store, windowSet)).shown).toMatchObject({ resetMs: 3_600_000, remaining: 0 });
      await sleep(5);
    }
    expect(store.stats().localRejections).toBe(2);
  });

  it('S11: are not cached if the window has room left, because a lower cost could fit', async () => {
    const store = newStore();
    const windowSet = windowSetOf('3/1h');
    await consume(store, windowSet, 2);
    expect((await consume(store, windowSet, 2)).accepted).toBe(false);
    expect((await consume(store, windowSet, 1)).accepted).toBe(true);
    expect(store.stats().localRejections).toBe(0);
  });

  it('S10: do not apply to another plan', async () => {
    const store = newStore();
    await denied(store, windowSetOf('1/1h'));
    expect((await consume(store, windowSetOf('2/1h'))).accepted).toBe(true);
  });

  it('S13: are forgotten at a refund', async () => {
    const store = newStore();
    const windowSet = windowSetOf('1/1h');
    const { spent } = await denied(store, windowSet);
    expect(await store.settle(spent, 0)).toBe(true);
    expect((await consume(store, windowSet)).accepted).toBe(true);
  });

  it.each([{ account: 'acc', route: 'route' }, { account: 'acc' }, { route: 'route' }, {}])(
    'S14: are forgotten at a reset of %o',
    async (target) => {
      const store = newStore();
      const windowSet = windowSetOf('1/1h');
      await denied(store, windowSet);
      await store.reset(target);
      expect((await consume(store, windowSet)).accepted).toBe(true);
    },
  );

  it.each(['refund', 'reset'] as const)(
    'S13, S14: are not cached if their reply was on its way during a %s',
    async (how) => {
      const store = newStore();
      const windowSet = windowSetOf('1/1h');
      const spent = await consume(store, windowSet);
      const onItsWay = consume(store, windowSet);
      // The check was sent. What follows is sent after it.
      await new Promise((resolve) => setImmediate(resolve));
      const dropped = how === 'refund' ? store.settle(spent, 0) : store.reset({ account: 'acc', route: 'route' });
      expect((await onItsWay).accepted).toBe(false);
      await dropped;
      expect((await consume(store, windowSet)).accepted).toBe(true);
    },
  );

  it('S20: of other accounts stay cached while an account gives units back, as leases often do', async () => {
    const change = async () => true;
    const denials = new Denials({ maxMs: 60_000, maxKeys: 100 });
    const windowSet = windowSetOf('1/1h');
    const sentAt = monotonicClock.now();
    const remember = (account: string, at = sentAt) => {
      const decision = new Decision(account, 'r', windowSet, 1, 1_000, 0, [1_000, 1]);
      denials.remember(account, decision, 0, Float64Array.of(1_000, 1), at, at);
    };
    const isCached = (account: string) =>
      denials.get(account, account, 'r', windowSet, 1, monotonicClock.now()) !== undefined;
    for (const account of ['a', 'b']) remember(account);
    await denials.forgetDuring({ account: 'a' }, change);
    expect([isCached('a'), isCached('b')]).toEqual([false, true]);
    // A reply to a check that was sent before.
    remember('a');
    expect(isCached('a')).toBe(false);
    remember('a', monotonicClock.now() + 1);
    expect(isCached('a')).toBe(true);
    // What is remembered of accounts is bounded, too.
    for (let i = 0; i < 100; i++) await denials.forgetDuring({ account: `other ${i}` }, change);
    remember('b');
    expect([isCached('a'), isCached('b')]).toEqual([false, false]);
    for (const account of ['c', 'd']) remember(account, monotonicClock.now() + 1);
    await denials.forgetDuring({}, change);
    expect([isCached('c'), isCached('d')]).toEqual([false, false]);
  });

  it('S20: notice a reset by another process after at most denyCacheMaxMs', async () => {
    const prefix = newPrefix();
    const store = newStore(prefix, 1_000);
    const windowSet = windowSetOf('1/1h');
    await denied(store, windowSet);
    await newStore(prefix).reset({ account: 'acc' });
    await sleep(1_010);
    expect((await consume(store, windowSet)).accepted).toBe(true);
  });

  it('are bounded: of 100,000 rejections only maxKeys are cached, and each costs little time', () => {
    const denials = new Denials({ maxMs: 60_000, maxKeys: 10_000 });
    const windowSet = windowSetOf('1/1h');
    const counters = [1_000, 1];
    const cpuMs = startCpuTimer();
    for (let i = 0; i < 100_000; i++) {
      const decision = new Decision(`a${i}`, 'r', windowSet, 1, 1_000, 0, counters);
      denials.remember(`a${i}`, decision, 0, Float64Array.from(counters), 0, 0);
    }
    let cached = 0;
    for (let i = 0; i < 100_000; i++) if (denials.get(`a${i}`, `a${i}`, 'r', windowSet, 1, 10) !== undefined) cached++;
    expect(cached).toBe(10_000);
    expect(cpuMs()).toBeLessThan(3_000);
    cached = 0;
    for (let i = 0; i < 100_000; i++)
      if (denials.get(`a${i}`, `a${i}`, 'r', windowSet, 1, 60_000) !== undefined) cached++;
    expect(cached).toBe(0);
  });
});
