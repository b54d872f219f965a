/** Shared limits on a PostgreSQL server that is killed, frozen, and lost. */
import { patient } from 'headgate-testbed/patience';
import { postgresForFile } from 'headgate-testbed/postgres-for-file';
import { eventually, pause } from 'headgate-testbed/raw-http';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createPostgresAdjustments, migrate } from '../../src/postgres.ts';
import { createSharedLimits, type SharedLimits } from '../../src/shared-limits/index.ts';

const server = await postgresForFile();
const BASE = { allMethods: ['60/1m'] };
const JANE = { by: 'jane' };

const pools: pg.Pool[] = [];
const opened: SharedLimits[] = [];
function connect(): pg.Pool {
  const pool = new pg.Pool({ connectionString: server.url(), connectionTimeoutMillis: 1_000 });
  pool.on('error', () => undefined);
  pools.push(pool);
  return pool;
}
beforeAll(() => migrate(connect()));
afterAll(async () => {
  await Promise.all(opened.map((limits) => limits.close()));
  await Promise.all(pools.map((pool) => pool.end()));
});

/** A process: connections of its own, and limits that read the server every 500 ms as by default. */
async function start() {
  const adjustments = createPostgresAdjustments(connect(), { logger: false });
  const limits = createSharedLimits({ base: BASE, adjustments, logger: false });
  opened.push(limits);
  await limits.ready();
  const maxOf = (account: string) => limits.windowSet({ account, route: 'GET /emails' }).windows[0]?.max;
  return { limits, maxOf };
}

describe('two processes', () => {
  it('forty changes of one are obeyed by the other a second later, each of them', async () => {
    const [one, other] = await Promise.all([start(), start()]);
    const rounds = Array.from({ length: 40 }, async (_, i) => {
      await pause(i * 25);
      await one.limits.put({ account: `acc_${i}` }, [`${61 + i}/1m`], JANE);
      await pause(1_000);
      return other.maxOf(`acc_${i}`) === 61 + i;
    });
    expect((await Promise.all(rounds)).filter((obeyed) => !obeyed)).toEqual([]);
  });
});

describe.each(['killed', 'frozen'])('PostgreSQL %s', (fault) => {
  it('decisions go on by the adjusted limits, a change fails in time, and nothing is half done', async () => {
    const account = fault;
    const one = await start();
    await one.limits.put({ account }, ['61/1m'], JANE);
    if (fault === 'killed') await server.kill();
    else server.freeze();
    try {
      await eventually(() => one.limits.state.source === 'kept', 'the first reading that fails');
      const began = performance.now();
      await expect(one.limits.put({ account }, ['62/1m'], JANE)).rejects.toThrow(/did not answer|unavailable/);
      expect(performance.now() - began).toBeLessThan(patient(1_000));
      expect(one.maxOf(account)).toBe(61);
    } finally {
      if (fault === 'killed') await server.restart();
      else server.thaw();
    }
    await eventually(() => one.limits.state.source === 'store', 'a reading');
    await eventually(async () => {
      const [last] = await one.limits.history({ limit: 1, target: { account } });
      return one.maxOf(account) === last?.limits[0]?.to?.[0]?.max;
    }, 'the last change');
    expect((await start()).maxOf(account)).toBe(one.maxOf(account));
  });
});

it('a database that lost everything: nobody falls back to the base, and a new process obeys', async () => {
  const one = await start();
  await one.limits.put({ account: 'lost' }, ['61/1m'], JANE);
  await connect().query('drop schema headgate cascade');
  const began = performance.now();
  const seen = new Set<number | undefined>();
  while (performance.now() - began < 1_000) {
    seen.add(one.maxOf('lost'));
    await pause(20);
  }
  await migrate(connect());
  await eventually(() => one.limits.state.source === 'store', 'a reading');
  seen.add(one.maxOf('lost'));
  expect(seen).toEqual(new Set([61]));
  const late = await start();
  await eventually(() => late.maxOf('lost') === 61, 'the new process');
});
