/** Calls that wait for a lock, which a connection of the test holds. */
import { afterAll, afterEach, expect, it } from 'vitest';
import { Decision, FITS } from '../../../src/core/decision.ts';
import { createPostgresStore } from '../../../src/stores/postgres/limits.ts';
import { digest, ZERO } from '../../../src/stores/postgres/names.ts';
import { migrated, newPool } from '../../support/postgres.ts';
import { windowSetFrom } from '../../support/window-set.ts';

const SCHEMA = 'locks';
const pool = await migrated(newPool(), SCHEMA);
const create = (deadlineMs = 60_000, ofPool = pool) =>
  createPostgresStore(ofPool, {
    schema: SCHEMA,
    deadlineMs,
    denyCacheMaxMs: 0,
    onStoreFailure: 'refuse',
    logger: false,
  });
const windowSet = windowSetFrom([], ['5/1h']);

const holder = await pool.connect();
afterAll(() => holder.release());
afterEach(() => holder.query('rollback'));

const hold = async (account: string, route?: string) => {
  await holder.query('begin');
  const place = [digest(account), route === undefined ? ZERO : digest(route)];
  const { rowCount } = await holder.query(
    `select from ${SCHEMA}.counters where account = $1::text::uuid and route = $2::text::uuid for update`,
    place,
  );
  expect(rowCount).toBe(1);
};

/** Waits until so many calls wait for locks of the tables of this file. */
const waiting = (calls: number) =>
  expect
    .poll(async () => {
      const sql = `select count(*) from pg_stat_activity where wait_event_type = 'Lock' and query like '%"locks".%'`;
      return Number((await pool.query(sql)).rows[0].count);
    })
    .toBe(calls);

it('S5: a decision that waited for another one counts its charge', async () => {
  await create().consume('turn', 'r', windowSet, 1);
  await hold('turn', 'r');
  await holder.query(`update ${SCHEMA}.counters set windows[3] = 4 where account = $1::text::uuid`, [digest('turn')]);
  const decisions = [create().consume('turn', 'r', windowSet, 1), create().consume('turn', 'r', windowSet, 1)];
  await waiting(2);
  await holder.query('commit');
  const accepted = (await Promise.all(decisions)).filter((decision) => decision.accepted);
  expect(accepted.map(({ shown }) => shown?.remaining)).toEqual([0]);
});

it('a new account that two processes charge at the same time loses no charge', async () => {
  // The row of the other process is not committed yet.
  await holder.query('begin');
  const now = `(extract(epoch from clock_timestamp()) * 1000)::bigint`;
  await holder.query(
    `insert into ${SCHEMA}.counters values ($1::text::uuid, $2::text::uuid, 99999999, array[${4 * 3_600_000 + 1}, ${now}, 3])`,
    [digest('new'), digest('r')],
  );
  const decision = create().consume('new', 'r', windowSet, 1);
  await waiting(1);
  await holder.query('commit');
  expect((await decision).shown?.remaining).toBe(1);
});

it('a call that inserted one row and finds the other one changed, decides with what is there', async () => {
  const shared = windowSetFrom(['5/1h'], ['5/1h'], 'account');
  for (const [charged, remaining] of [
    [4, [4, 0]],
    [5, [5, 0]],
  ] as const) {
    const account = `half ${charged}`;
    await create().consume(account, 'first', shared, 1);
    await hold(account);
    await holder.query(
      `update ${SCHEMA}.counters set windows[3] = ${charged} where account = $1::text::uuid and route = '${ZERO}'`,
      [digest(account)],
    );
    const decision = create().consume(account, 'second', shared, 1);
    await waiting(1);
    await holder.query('commit');
    expect((await decision).accepted).toBe(charged === 4);
    const status = await create().peek(account, 'second', shared);
    expect(status.map((window) => window.remaining)).toEqual(remaining);
  }
});

it('S14: a decision that waits for a reset counts from zero, and so does the next', async () => {
  await create().consume('reset', 'r', windowSet, 3);
  await hold('reset', 'r');
  await holder.query(`delete from ${SCHEMA}.counters where account = $1::text::uuid`, [digest('reset')]);
  const decision = create().consume('reset', 'r', windowSet, 1);
  await waiting(1);
  await holder.query('commit');
  expect((await decision).shown?.remaining).toBe(4);
  expect((await create().consume('reset', 'r', windowSet, 1)).shown?.remaining).toBe(3);
});

it('S36: a decision about a known or a new route sees a block with its fresh start, or neither', async () => {
  await create().consume('fresh', 'known', windowSet, 3);
  // A block that is not committed yet.
  await holder.query('begin');
  await holder.query(`select ${SCHEMA}.block_1($1::text::uuid, '${ZERO}', 60000, null, null, true)`, [digest('fresh')]);
  const decisions = ['known', 'new'].map((route) => create().consume('fresh', route, windowSet, 1));
  await waiting(2);
  await holder.query('commit');
  for (const decision of await Promise.all(decisions)) expect(decision.blocked?.forMs).toBeGreaterThan(0);
  for (const route of ['known', 'new']) {
    expect((await create().peek('fresh', route, windowSet))[0]?.remaining).toBe(5);
  }
});

it('S36: a fresh start waits for a decision that creates a row, and deletes it', async () => {
  const other = windowSetFrom(['5/1h'], ['5/1h'], 'account');
  await create().consume('creating', 'first', other, 1);
  // The decision about a new route has inserted its row, and waits for the row of the account.
  await hold('creating');
  const decision = create().consume('creating', 'second', other, 1);
  await waiting(1);
  const block = create().block({ account: 'creating' }, { forMs: 60_000 }, { longestMs: 3_600_000 });
  await waiting(2);
  await holder.query('commit');
  await block;
  expect((await decision).accepted).toBe(true);
  const status = await create().peek('creating', 'second', other);
  expect(status.map(({ remaining }) => remaining)).toEqual([5, 5]);
});

it('S37: of two processes that settle one receipt at the same time, one does', async () => {
  const store = create();
  const charged = await store.consume('receipt', 'r', windowSet, 3);
  const again = new Decision('receipt', 'r', windowSet, 3, charged.decidedAt, FITS, [
    charged.trace[0]?.startedAt ?? 0,
    3,
  ]);
  await hold('receipt', 'r');
  const settled = [charged, again].map((decision) => create().settleOnce(decision, 1, 'r'.repeat(22)));
  await waiting(2);
  await holder.query('commit');
  expect((await Promise.all(settled)).sort()).toEqual([false, true]);
  expect((await store.peek('receipt', 'r', windowSet))[0]?.remaining).toBe(4);
});

it('a reset and a decision take the rows of an account in the same order', async () => {
  const [first, last] = ['r1', 'r2'].sort((one, other) => (digest(one) < digest(other) ? -1 : 1)) as [string, string];
  const shared = windowSetFrom(['5/1h'], ['5/1h'], 'account');
  for (const route of [first, last]) await create().consume('order', route, shared, 1);
  await hold('order', first);
  const reset = create().reset({ account: 'order' });
  await waiting(1);
  const decision = create().consume('order', last, shared, 1);
  await waiting(2);
  await holder.query('commit');
  await reset;
  expect((await decision).trace.map(({ remaining }) => remaining)).toEqual([4, 4]);
});

it('T1: an account whose calls wait takes one connection, and others go on', async () => {
  const store = create(60_000, newPool({ max: 3 }));
  await store.consume('busy', 'r', windowSet, 1);
  await hold('busy', 'r');
  const calls = Array.from({ length: 64 }, () => store.consume('busy', 'r', windowSet, 1));
  await waiting(1);
  for (let i = 0; i < 10; i++) {
    calls.push(store.consume('busy', 'r', windowSet, 1));
    expect((await store.consume(`other ${i}`, 'r', windowSet, 1)).accepted).toBe(true);
  }
  await waiting(1);
  await holder.query('commit');
  expect((await Promise.all(calls)).filter((decision) => decision.accepted)).toHaveLength(4);
});

it('a call whose lock comes too late changes nothing, and says that it was not executed', async () => {
  const store = create(300);
  await store.consume('late', 'r', windowSet, 1);
  await hold('late', 'r');
  const error = await Promise.resolve(store.consume('late', 'r', windowSet, 1)).catch((thrown) => thrown);
  expect(['store_timeout', 'store_unavailable']).toContain(error.code);
  // The server gives up by itself.
  await waiting(0);
  await holder.query('commit');
  expect((await store.peek('late', 'r', windowSet))[0]?.remaining).toBe(4);
});
