import { tracingChannel } from 'node:diagnostics_channel';
import { expect, it } from 'vitest';
import { STORE_CHANNEL } from '../../../src/core/store-channel.ts';
import { createPostgresStore } from '../../../src/stores/postgres/limits.ts';
import type { PostgresStoreOptions } from '../../../src/stores/postgres/options.ts';
import { createFakeClock } from '../../../src/testing/fake-clock.ts';
import { migrated, newPool } from '../../support/postgres.ts';
import { windowSetFrom } from '../../support/window-set.ts';

const SCHEMA = 'limit_store';
const pool = await migrated(newPool(), SCHEMA);
const newStore = (options: PostgresStoreOptions = {}) =>
  createPostgresStore(pool, { schema: SCHEMA, deadlineMs: 60_000, ...options });
const count = async (table = 'counters', where = 'true'): Promise<number> =>
  Number((await pool.query(`select count(*) from ${SCHEMA}.${table} where ${where}`)).rows[0].count);

it('decides requests that come at once with few calls, and in their order for equal requests', async () => {
  const store = newStore();
  const windowSet = windowSetFrom(['7/1m'], ['90/1d']);
  const many = Array.from({ length: 60 }, (_, i) => store.consume(`many ${i % 30}`, 'r', windowSet, 1));
  const hot = Array.from({ length: 10 }, () => store.consume('hot', 'r', windowSet, 1));
  expect((await Promise.all(many)).every(({ accepted }) => accepted)).toBe(true);
  const decisions = await Promise.all(hot);
  expect(decisions.map(({ accepted }) => accepted)).toEqual([...Array(7).fill(true), ...Array(3).fill(false)]);
  expect(decisions.map(({ trace }) => trace[0]?.remaining)).toEqual([6, 5, 4, 3, 2, 1, 0, 0, 0, 0]);
  expect(store.stats().calls).toBeLessThan(6);
  expect(store.stats().coalesced).toBe(70 - store.stats().calls);
});

it('counts requests with different costs, window sets and routes of one account, all at once', async () => {
  const store = newStore();
  const of = (max: number) => windowSetFrom([`${max}/1m`], ['20/1d'], 'account');
  const [one, other] = [of(8), of(9)];
  const decisions = await Promise.all(
    Array.from({ length: 30 }, (_, i) =>
      store.consume('mixed', `r${i % 3}`, i % 2 === 0 ? one : other, i % 5 === 0 ? 2 : 1),
    ),
  );
  const accepted = decisions.filter((decision) => decision.accepted);
  const sum = accepted.reduce((total, { cost }) => total + cost, 0);
  const status = await store.peek('mixed', 'r0', one);
  expect(status[1]?.remaining).toBe(20 - sum);
  expect(sum).toBeGreaterThan(17);
});

it('reads the counters of one turn with one call', async () => {
  const store = newStore();
  const windowSet = windowSetFrom(['7/1m'], ['90/1d'], 'account');
  await store.consume('read', 'r1', windowSet, 2);
  const { calls } = store.stats();
  const statuses = await Promise.all(['r0', 'r1', 'r2'].map((route) => store.peek('read', route, windowSet)));
  expect(statuses.map((windows) => windows.map(({ remaining }) => remaining))).toEqual([
    [7, 88],
    [5, 88],
    [7, 88],
  ]);
  expect(store.stats().calls).toBe(calls + 1);
});

it('S18: new rows remove rows that are over, so that the tables do not grow', async () => {
  const clock = createFakeClock(1_000_000_000_000);
  const store = newStore({ clock });
  await pool.query(`delete from ${SCHEMA}.counters`);
  const windowSet = windowSetFrom([], ['5/1m']);
  for (let round = 0; round < 40; round++) {
    await Promise.all(
      Array.from({ length: 40 }, async (_, i) => {
        await store.consume(`${round} ${i}`, 'r', windowSet, 1);
        if (i % 4 === 0) await store.block({ account: `${round} ${i}` }, { forMs: 1_000 });
      }),
    );
    clock.advance(120_000);
  }
  // Of 1,600 rows. Each new row sweeps with a chance of one in 64.
  for (const table of ['counters', 'blocks']) {
    expect(await count(table)).toBeGreaterThan(0);
    expect(await count(table)).toBeLessThan(800);
  }
});

it('S5: a rejected request writes nothing', async () => {
  const store = newStore({ denyCacheMaxMs: 0 });
  const windowSet = windowSetFrom(['1/1h'], ['5/1d'], 'account');
  await store.consume('spent', 'r', windowSet, 1);
  // A lock or an update would change xmax or ctid.
  const rows = () => pool.query(`select ctid, xmin, xmax, * from ${SCHEMA}.counters order by account, route`);
  const before = await rows();
  expect((await store.consume('spent', 'r', windowSet, 1)).accepted).toBe(false);
  expect((await store.consume('spent', 'other', windowSetFrom(['0/1h'], ['5/1d'], 'account'), 1)).accepted).toBe(false);
  expect((await rows()).rows).toEqual(before.rows);
});

it('S20: a rejection is repeated without a call, until the process itself changes the counters', async () => {
  const store = newStore();
  const windowSet = windowSetFrom([], ['1/1h']);
  const charged = await store.consume('denied', 'r', windowSet, 1);
  for (let i = 0; i < 3; i++) expect((await store.consume('denied', 'r', windowSet, 1)).accepted).toBe(false);
  expect(store.stats()).toMatchObject({ calls: 2, localRejections: 2 });
  expect(await store.settle(charged, 0)).toBe(true);
  expect((await store.consume('denied', 'r', windowSet, 1)).accepted).toBe(true);
  await store.reset({ account: 'denied' });
  expect((await store.consume('denied', 'r', windowSet, 1)).accepted).toBe(true);
});

it('a block of another process ends a request, and its own block is known without a call', async () => {
  const [store, other] = [newStore(), newStore()];
  const windowSet = windowSetFrom([], ['5/1h']);
  await other.block({ account: 'blocked' }, { forMs: 60_000, reason: 'abuse \0 \ud800' });
  const { blocked } = await store.consume('blocked', 'r', windowSet, 1);
  expect(blocked?.reason).toBe('abuse \0 \ud800');
  expect(blocked?.forMs).toBeGreaterThan(50_000);
  expect((await store.consume('blocked', 'r2', windowSet, 1)).accepted).toBe(false);
  await store.unblock({ account: 'blocked' });
  expect((await store.consume('blocked', 'r', windowSet, 1)).accepted).toBe(true);
});

it('S14: a reset of a route reaches every page of rows, and no other route', async () => {
  const store = newStore();
  await pool.query(`delete from ${SCHEMA}.counters`);
  const windowSet = windowSetFrom([], ['5/1h']);
  const accounts = Array.from({ length: 2_100 }, (_, i) => `page ${i}`);
  const used = accounts.map((account, i) => store.consume(account, i % 100 === 0 ? 'kept' : 'gone', windowSet, 1));
  await Promise.all(used);
  await store.reset({ route: 'gone' });
  expect(await count()).toBe(21);
  await store.reset({ account: 'page 100' });
  expect(await count()).toBe(20);
  await store.reset({});
  expect(await count()).toBe(0);
});

it('stores of one client and schema share an identity', () => {
  expect(newStore().identity).toBe(newStore().identity);
  expect(newStore({ schema: 'other' }).identity).not.toBe(newStore().identity);
  expect(createPostgresStore(newPool(), { schema: SCHEMA }).identity).not.toBe(newStore().identity);
});

it('publishes its calls', async () => {
  const calls: unknown[] = [];
  const channel = tracingChannel<typeof STORE_CHANNEL, object>(STORE_CHANNEL);
  const handlers = { start: (call: object) => calls.push({ ...call }) } as never;
  channel.subscribe(handlers);
  const store = newStore();
  await store.consume('traced', 'r', windowSetFrom([], ['5/1h']), 1);
  await store.peek('traced', 'r', windowSetFrom([], ['5/1h']));
  channel.unsubscribe(handlers);
  expect(calls).toMatchObject([
    { store: 'limits', operation: 'consume' },
    { store: 'limits', operation: 'peek' },
  ]);
});

it('commits charges without waiting for the disk, unless they must be durable', async () => {
  const settings: unknown[] = [];
  const recording = {
    totalCount: 0,
    waitingCount: 0,
    query: () => Promise.reject(new Error('unused')),
    connect: async () => {
      const client = await pool.connect();
      const query = async (config: pgQuery) => {
        await client.query('begin');
        const result = await client.query(config as never);
        settings.push((await client.query(`select current_setting('synchronous_commit') as value`)).rows[0].value);
        await client.query('commit');
        return result;
      };
      return { query, on: () => {}, off: () => {}, end: async () => {}, release: () => client.release() };
    },
  };
  for (const durable of [false, true]) {
    const store = createPostgresStore(recording, { schema: SCHEMA, durable, deadlineMs: 60_000 });
    await store.consume(`durable ${durable}`, 'r', windowSetFrom([], ['5/1h']), 1);
  }
  expect(settings).toEqual(['off', 'on']);
});

type pgQuery = object;

it.each([
  [{ schema: 'x"; drop' }, /schema/],
  [{ deadlineMs: 0 }, /deadlineMs/],
  [{ onStoreFailure: 'open' as never }, /onStoreFailure/],
  [{ durable: 'yes' as never }, /durable/],
  [{ prefix: 'x' } as never, /options\.prefix: unknown option/],
])('refuses %j', (options, message) => {
  expect(() => createPostgresStore(pool, options)).toThrow(message);
});
