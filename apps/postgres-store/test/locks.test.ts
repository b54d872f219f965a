/** Calls that wait for a lock, which a connection of the test holds. */
import { createWindowSet, StoreTimeoutError } from 'headgate/stores';
import { afterAll, afterEach, expect, inject, test } from 'vitest';
import { createPostgresStore } from '../src/index.ts';
import { digest, lockOf } from '../src/names.ts';
import { migratedPool, newPool } from './support/pool.ts';

const pool = await migratedPool('locks');
const create = (deadlineMs = 60_000, ofPool = pool) => createPostgresStore(ofPool, { schema: 'locks', deadlineMs });
const HOUR = { max: 5, durationMs: 3_600_000 };
const windowSet = createWindowSet([], [HOUR]);

const holder = await pool.connect();
afterAll(() => holder.release());
afterEach(() => holder.query('rollback'));

const hold = async (route: string) => {
  await holder.query('begin');
  await holder.query('select from locks.counters where route = $1 for update', [digest(route)]);
};

/** Waits until so many calls wait for locks of the tables of this file. */
const waiting = (calls: number) =>
  expect
    .poll(async () => {
      const sql = `select count(*) from pg_stat_activity where wait_event_type = 'Lock' and query like '%"locks".%'`;
      return Number((await pool.query(sql)).rows[0].count);
    })
    .toBe(calls);

test('S15: a window that starts while a call waits is not one of the future', async () => {
  const once = { ...HOUR, max: 1 };
  await holder.query('begin');
  await holder.query('select pg_advisory_xact_lock($1)', [lockOf(digest('overtaken'))]);
  const waits = create().consume('overtaken', 'GET /', createWindowSet([once], [HOUR], 'account'), 1);
  await waiting(1);
  // This one does not need the lock of the account.
  expect((await create().consume('overtaken', 'GET /', createWindowSet([once], []), 1)).accepted).toBe(true);
  await holder.query('commit');
  expect((await waits).accepted).toBe(false);
});

test('a reset and a decision take the rows of an account in the same order', async () => {
  const [first = '', last = ''] = ['GET /a', 'GET /b'].sort((one, other) => Buffer.compare(digest(one), digest(other)));
  const shared = createWindowSet([HOUR], [HOUR], 'account');
  for (const route of [first, last]) await create().consume('acc', route, shared, 1);
  await hold(first);
  const reset = create().reset({ account: 'acc' });
  await waiting(1);
  const decision = create().consume('acc', last, shared, 1);
  await waiting(2);
  await holder.query('commit');
  await reset;
  expect((await decision).shown?.remaining).toBe(4);
});

test('T1: an account whose calls wait does not take the connections of others', async () => {
  const store = create(60_000, newPool(inject('postgresStore').url, { max: 3 }));
  await store.consume('busy', 'GET /busy', windowSet, 1);
  await hold('GET /busy');
  const calls = Array.from({ length: 20 }, () => store.consume('busy', 'GET /busy', windowSet, 1));
  await waiting(1);
  expect((await store.consume('other', 'GET /other', windowSet, 1)).accepted).toBe(true);
  await holder.query('commit');
  const accepted = (await Promise.all(calls)).filter((decision) => decision.accepted);
  expect(accepted).toHaveLength(4);
});

test('at most 1,000 calls wait for earlier calls of their account; the next ones fail at once, and others go on', async () => {
  const store = create(2_000);
  await create().consume('flood', 'GET /flood', windowSet, 1);
  await hold('GET /flood');
  const calls = Promise.allSettled(
    Array.from({ length: 1_003 }, () => store.consume('flood', 'GET /flood', windowSet, 1)),
  );
  expect((await store.consume('calm', 'GET /calm', windowSet, 1)).accepted).toBe(true);
  const errors = (await calls).map((end) => (end.status === 'rejected' ? end.reason : undefined));
  const refused = errors.filter((error) => error?.cause?.message === '1000 calls wait for earlier ones');
  expect(refused).toHaveLength(2);
  expect(refused[0]).toMatchObject({ code: 'store_unavailable', sent: false });
});

test('a call that gets its lock too late changes nothing', async () => {
  const store = create(300);
  await store.consume('late', 'GET /late', windowSet, 1);
  await hold('GET /late');
  await expect(store.consume('late', 'GET /late', windowSet, 1)).rejects.toThrow(StoreTimeoutError);
  // The server receives the call a little later than this process begins to wait.
  await new Promise((resolve) => setTimeout(resolve, 200));
  await holder.query('commit');
  await waiting(0);
  expect((await store.peek('late', 'GET /late', windowSet))[0]?.remaining).toBe(4);
});
