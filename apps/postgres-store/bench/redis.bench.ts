/** Decisions of the PostgreSQL store and of the Redis store, in turns, on servers of this machine. */
import { createRedisStore } from 'headgate/redis';
import { createWindowSet, type LimitStore } from 'headgate/stores';
import { startPostgres } from 'headgate-testbed/postgres-server';
import { startRedis } from 'headgate-testbed/redis-server';
import { Redis } from 'ioredis';
import pg from 'pg';
import { expect, test } from 'vitest';
import { createPostgresStore, migrate } from '../src/index.ts';

const ROUNDS = 30;
const PLAN = createWindowSet([{ max: 1e9, durationMs: 60_000 }], [{ max: 1e9, durationMs: 86_400_000 }]);

/** Milliseconds per decision. */
type Load = (store: LimitStore) => Promise<number>;

const oneByOne: Load = async (store) => {
  const start = performance.now();
  for (let i = 0; i < 50; i++) await store.consume('one', 'GET /', PLAN, 1);
  return (performance.now() - start) / 50;
};
const together: Load = async (store) => {
  const start = performance.now();
  await Promise.all(Array.from({ length: 500 }, (_, i) => store.consume(`account ${i}`, 'GET /', PLAN, 1)));
  return (performance.now() - start) / 500;
};

const median = (values: readonly number[]): number => [...values].sort((a, b) => a - b)[values.length >> 1] ?? 0;

test('ratios', async () => {
  const [postgres, redis] = [await startPostgres(), await startRedis()];
  const pool = new pg.Pool({ connectionString: postgres.url() });
  pool.on('error', () => undefined);
  const client = new Redis({ port: redis.port });
  try {
    await migrate(pool);
    const inPostgres = createPostgresStore(pool, { deadlineMs: 60_000 });
    const inRedis = createRedisStore(client, { deadlineMs: 60_000, onStoreFailure: 'refuse' });
    await inRedis.ready();
    for (const [name, load] of Object.entries({ oneByOne, together })) {
      const ratios: number[] = [];
      const times: [number, number][] = [];
      for (let round = 0; round < ROUNDS; round++) {
        const one: [number, number] = [await load(inPostgres), await load(inRedis)];
        times.push(one);
        ratios.push(one[0] / one[1]);
      }
      const [ofPostgres, ofRedis] = [median(times.map(([ms]) => ms)), median(times.map(([, ms]) => ms))];
      process.stdout.write(
        `${name}: PostgreSQL ${ofPostgres.toFixed(3)} ms, Redis ${ofRedis.toFixed(3)} ms per decision; ratio ${median(ratios).toFixed(1)}\n`,
      );
      expect(ratios).toHaveLength(ROUNDS);
    }
  } finally {
    await pool.end();
    client.disconnect();
    await Promise.all([postgres.stop(), redis.stop()]);
  }
});
