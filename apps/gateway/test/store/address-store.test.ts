/** Addresses have separate room, because clients choose them. */

import type { Decision } from 'headgate';
import { parseLimit } from 'headgate';
import { createMemoryStore } from 'headgate/memory';
import { createWindowSet } from 'headgate/stores';
import { startRedis } from 'headgate-testbed/redis-server';
import { startUpstream } from 'headgate-testbed/upstream';
import { describe, expect, it } from 'vitest';
import { withAddresses } from '../../src/store/address-store.ts';
import { configOf } from '../support/gateway.ts';
import { startInProcess } from '../support/in-process.ts';

const WINDOWS = createWindowSet([], parseLimit(['2/1h']));

describe('withAddresses', () => {
  const open = () => {
    const [store, addresses] = [createMemoryStore(), createMemoryStore({ maxKeys: 1 })];
    return { store, addresses, both: withAddresses(store, addresses) };
  };
  const consume = ({ both }: ReturnType<typeof open>, account: string) =>
    both.consume(account, 'GET /x', WINDOWS, 1) as Decision;

  it('a new address is refused while the room is full, and no other account is', () => {
    const stores = open();
    expect(consume(stores, 'address:192.0.2.1').accepted).toBe(true);
    expect(() => consume(stores, 'address:192.0.2.2')).toThrow(/full/);
    expect(consume(stores, 'address').accepted).toBe(true);
    expect(consume(stores, 'key:one').accepted).toBe(true);
    expect([stores.store.stats().keys, stores.addresses.stats().keys]).toEqual([2, 1]);
  });

  it('settles, peeks, resets and blocks where the account is, and returns no promise', () => {
    const { store, addresses, both } = open();
    const remaining = (account: string) => both.peek(account, 'GET /x', WINDOWS);
    for (const account of ['address:192.0.2.1', 'acc_1']) {
      const decision = both.consume(account, 'GET /x', WINDOWS, 2) as Decision;
      expect(both.settle(decision, 1)).toBe(true);
      expect(remaining(account)).toMatchObject([{ remaining: 1 }]);
      expect(both.reset({ account })).toBeUndefined();
      expect(remaining(account)).toMatchObject([{ remaining: 2 }]);
      both.block?.({ account }, { forMs: 60_000 });
      expect(both.consume(account, 'GET /x', WINDOWS, 1)).toMatchObject({ accepted: false });
      expect(both.blocked?.({ account })).toMatchObject({ forMs: expect.any(Number) });
      both.unblock?.({ account });
      expect(both.consume(account, 'GET /x', WINDOWS, 1)).toMatchObject({ accepted: true });
    }
    expect([store.stats().keys, addresses.stats().keys]).toEqual([1, 1]);
    expect(both.reset({ route: 'GET /x' })).toBeUndefined();
    expect([remaining('acc_1'), remaining('address:192.0.2.1')]).toMatchObject([
      [{ remaining: 2 }],
      [{ remaining: 2 }],
    ]);
  });
});

describe('perAddress', () => {
  const CHATS = '/api/v1/chats?account_id=acc_1';
  const start = async (rest: Record<string, unknown>) =>
    startInProcess(configOf((await startUpstream()).url, { perAddress: ['2/1h'], ...rest }));

  it('is one count for all gateways with one Redis', async () => {
    const redis = await startRedis();
    const store = `redis://127.0.0.1:${redis.port}`;
    const [a, b] = [await start({ store }), await start({ store })];
    const statuses = [];
    for (const gateway of [a, b, a, b]) statuses.push((await gateway.ask('GET', CHATS)).status);
    await Promise.all([a.stop(), b.stop()]);
    await redis.stop();
    expect(statuses).toEqual([200, 200, 429, 429]);
  });

  it.each([
    ['local', [200, 200, 429]],
    ['admit', [200, 200, 200]],
    ['refuse', [503, 503, 503]],
  ])('while Redis is down, %s decides, without a rate-limit field', async (onStoreFailure, expected) => {
    const gateway = await start({ store: 'redis://127.0.0.1:1', storeDeadlineMs: 50, onStoreFailure });
    const replies = [];
    for (let i = 0; i < 3; i++) replies.push(await gateway.ask('GET', CHATS));
    expect(replies.map(({ status }) => status)).toEqual(expected);
    expect(replies.flatMap(({ headers }) => Object.keys(headers).filter((name) => /ratelimit/.test(name)))).toEqual([]);
    const outcome = /^headgate_address_decisions_total\{outcome="degraded"\} 3$/m;
    expect(outcome.test(await gateway.metrics())).toBe(onStoreFailure !== 'refuse');
    await gateway.stop();
  });
});
