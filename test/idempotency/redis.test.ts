import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { createIdempotency, type Idempotency } from '../../src/index.ts';
import { createRedisClaimStore, type RedisClaimStore } from '../../src/stores/redis/claims.ts';

const client = new Redis({ port: inject('redis').port });
const prefix = `idempotency-${process.pid}`;

beforeAll(() => client.ping());
afterAll(() => client.disconnect());

function gateway(): { readonly store: RedisClaimStore; readonly idempotency: Idempotency } {
  const store = createRedisClaimStore(client, { prefix, deadlineMs: 10_000 });
  return { store, idempotency: createIdempotency({ store }) };
}

describe('on Redis', () => {
  it('a first call takes two round trips, a replay takes one, a first call with explicit dispatch takes three', async () => {
    const { store, idempotency } = gateway();
    // The very first call must learn the time of the server.
    await idempotency.run('reference', 'r', () => 1);
    expect(store.stats().calls).toBe(3);
    const trips = async (call: () => Promise<unknown>): Promise<number> => {
      const { calls } = store.stats();
      await call();
      return store.stats().calls - calls;
    };
    expect(await trips(() => idempotency.run('a', 'r', () => 1))).toBe(2);
    expect(await trips(() => idempotency.run('a', 'r', () => 1))).toBe(1);
    const explicit = () => idempotency.run('b', 'r', ({ dispatch }) => dispatch(), { dispatch: 'explicit' });
    expect(await trips(explicit)).toBe(3);
    await idempotency.close();
  });

  it('I5: 50 duplicates at two gateways: one execution, one result for every caller', async () => {
    const gateways = [gateway().idempotency, gateway().idempotency];
    let runs = 0;
    const send = async () => {
      runs++;
      await new Promise((resolve) => setTimeout(resolve, 50));
      return `mail ${runs}`;
    };
    const all = await Promise.all(
      Array.from({ length: 50 }, (_, index) => (gateways[index % 2] as Idempotency).run('many', { to: 'a' }, send)),
    );
    expect(runs).toBe(1);
    expect(all.filter(({ kind }) => kind === 'executed')).toHaveLength(1);
    expect(all.every((result) => 'value' in result && result.value === 'mail 1')).toBe(true);
    await Promise.all(gateways.map((idempotency) => idempotency.close()));
  });
});
