/** S37 in Redis: processes race for one receipt, and the memory of settled receipts is bounded and expires. */
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { createLimiter } from '../../../src/index.ts';
import { createReceipts } from '../../../src/limits/index.ts';
import { createRedisStore } from '../../../src/stores/redis/limits.ts';

const client = new Redis({ port: inject('redis').port, host: '127.0.0.1' });
beforeAll(() => client.ping());
afterAll(() => client.disconnect());

let prefixes = 0;
const newPrefix = (): string => `receipts-${process.pid}-${prefixes++}`;
const receipts = createReceipts({ secret: 'a secret of thirty-two characters' });
const newLimiter = (prefix: string, limits = ['1000/1h', '5000/1d']) => {
  const store = createRedisStore(client, { prefix, deadlineMs: 10_000, logger: false, onStoreFailure: 'refuse' });
  return createLimiter({ store, limits, receipts, validate: false });
};

it('S37: of processes that settle one receipt at once, one changes the counts', async () => {
  const prefix = newPrefix();
  const [producer, ...workers] = Array.from({ length: 6 }, () => newLimiter(prefix));
  const decisions = await Promise.all(
    Array.from({ length: 20 }, () => (producer as (typeof workers)[0]).consume({ account: 'a', cost: 10 })),
  );
  const texts = decisions.map(({ receipt }) => receipt);
  const settled = await Promise.all(
    decisions.flatMap((decision, i) => [
      ...workers.map((worker) => worker.settle(texts[i] as string, 2)),
      producer?.settle(decision, 1),
    ]),
  );
  expect(settled.filter(Boolean)).toHaveLength(20);
  const [window] = (await producer?.peek({ account: 'a' })) ?? [];
  expect(1_000 - (window?.remaining ?? 0)).toBeGreaterThanOrEqual(20);
  expect(1_000 - (window?.remaining ?? 0)).toBeLessThanOrEqual(40);
});

it('S37: receipts are in the slot of their account, and expire with the last window', async () => {
  const prefix = newPrefix();
  const limiter = newLimiter(prefix);
  const { receipt } = await limiter.consume({ account: 'a' });
  expect(await limiter.refund(receipt)).toBe(true);
  const key = `${prefix}:{a}:s`;
  const ttl = await client.pttl(key);
  expect(ttl).toBeGreaterThan(86_000_000);
  expect(ttl).toBeLessThanOrEqual(86_400_000);
  // A reset forgets counters, and not that a receipt was settled.
  await limiter.reset({ account: 'a' });
  expect([await client.zcard(key), await limiter.refund(receipt)]).toEqual([1, false]);
});

it('S37: those that are over make room; an account without room is refused, and nothing is changed', async () => {
  const prefix = newPrefix();
  const limiter = newLimiter(prefix);
  const key = `${prefix}:{a}:s`;
  const { receipt } = await limiter.consume({ account: 'a', cost: 5 });
  const fill = async (score: number) => {
    const script = 'for i = 1, 65536 do redis.call("ZADD", KEYS[1], ARGV[1], i) end';
    await client.eval(script, 1, key, score);
  };
  await fill(Date.now() + 60_000);
  await expect(limiter.refund(receipt)).rejects.toMatchObject({ code: 'store_full', maxKeys: 65_536 });
  expect((await limiter.peek({ account: 'a' }))[0]?.remaining).toBe(995);
  await fill(Date.now() - 1);
  expect([await limiter.refund(receipt), await client.zcard(key)]).toEqual([true, 1]);
  await client.set(`${prefix}:{b}:s`, 'foreign');
  const foreign = await limiter.consume({ account: 'b' });
  await expect(limiter.refund(foreign.receipt)).rejects.toMatchObject({ code: 'store_unavailable' });
});
