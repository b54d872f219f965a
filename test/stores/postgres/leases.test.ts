/** S32 in PostgreSQL: what many accounts give back shares statements, and a receipt is forgotten when it is too late. */
import { expect, it, onTestFinished, vi } from 'vitest';
import type { LeaseGrant } from '../../../src/core/ports.ts';
import { createPostgresStore, type PostgresStore } from '../../../src/stores/postgres/limits.ts';
import { createFakeClock } from '../../../src/testing/fake-clock.ts';
import { furtherOf } from '../../../src/testing/history-run.ts';
import { migrated, newPool } from '../../support/postgres.ts';
import { windowSetFrom } from '../../support/window-set.ts';

const SCHEMA = 'leases';
const pool = await migrated(newPool(), SCHEMA);
const newStore = (options = {}) =>
  createPostgresStore(pool, {
    schema: SCHEMA,
    deadlineMs: 60_000,
    onStoreFailure: 'refuse',
    logger: false,
    ...options,
  });
const windowSet = windowSetFrom(['10/1h'], ['20/1d']);
const shared = windowSetFrom(['10/1h'], ['2000/1d'], 'account');

let receipts = 0;
const newReceipt = (): string => String(receipts++).padStart(22, 'r');
const giveBack = (store: PostgresStore, grant: LeaseGrant, until?: number) =>
  store.settleOnce(furtherOf(grant), 0, newReceipt(), until);
const remaining = async (store: PostgresStore, account: string, of = windowSet) =>
  (await store.peek(account, 'r0', of)).map((window) => window.remaining);

it('is one statement with the other requests of its turn, which are decided in their order', async () => {
  const store = newStore();
  const [first, lease, second, last] = await Promise.all([
    store.consume('a', 'r0', windowSet, 1),
    store.lease('a', 'r0', windowSet, 1, 5),
    store.consume('a', 'r0', windowSet, 1),
    // Together they are more requests than an integer of PostgreSQL can count.
    ...[1, 2, 3].map(() => store.lease('a', 'r0', windowSet, 1, 1_000_000_000)),
  ]);
  expect([first, lease.decision, second, last?.decision].map((decision) => decision?.shown?.remaining)).toEqual([
    19, 18, 13, 12,
  ]);
  expect([lease.granted, last?.granted]).toEqual([5, 3]);
  expect(await remaining(store, 'a')).toEqual([0, 10]);
});

it('what 40 accounts and 20 routes of one account give back in one turn is two statements', async () => {
  const store = newStore();
  const pairs = [
    ...Array.from({ length: 40 }, (_, i) => [`a${i}`, 'r0'] as const),
    ...Array.from({ length: 20 }, (_, i) => ['b', `r${i}`] as const),
  ];
  const grants = await Promise.all(pairs.map(([account, route]) => store.lease(account, route, shared, 1, 5)));
  const connect = vi.spyOn(pool, 'connect');
  onTestFinished(() => connect.mockRestore());
  const settled = await Promise.all([
    ...grants.map((grant) => giveBack(store, grant)),
    // The same receipt in the same statement.
    store.settleOnce(furtherOf(grants[59] as LeaseGrant), 0, String(receipts - 1).padStart(22, 'r')),
    store.settleOnce(furtherOf(grants[39] as LeaseGrant), 0, 'any, "text" \\ of {others}'),
  ]);
  expect(connect).toHaveBeenCalledTimes(2);
  expect(settled).toEqual([...pairs.map(() => true), false, true]);
  expect(await remaining(store, 'b', shared)).toEqual([9, 1_980]);
  expect(await remaining(store, 'a1', shared)).toEqual([9, 1_999]);
});

it('processes that give back the same rows in any order do not wait for each other in a circle', async () => {
  const stores = [newStore(), newStore(), newStore()];
  const accounts = Array.from({ length: 30 }, (_, i) => `c${i}`);
  for (let round = 0; round < 5; round++) {
    const settled = await Promise.all(
      stores.map(async (store, i) => {
        const order = i % 2 === 0 ? accounts : accounts.toReversed();
        const grants = await Promise.all(order.map((account) => store.lease(account, 'r0', windowSet, 1, 2)));
        return Promise.all(grants.flatMap((grant) => [giveBack(store, grant), store.settle(grant.decision, 0)]));
      }),
    );
    expect(settled.flat()).toEqual(Array(180).fill(true));
  }
  expect(await remaining(stores[0] as PostgresStore, 'c7')).toEqual([10, 20]);
});

it('a receipt is remembered until it is too late for it, and new ones remove it then', async () => {
  await pool.query(`truncate ${SCHEMA}.receipts`);
  const clock = createFakeClock(1_000_000_000_000);
  const store = newStore({ clock });
  const ends = async () =>
    (await pool.query(`select ends::float8 from ${SCHEMA}.receipts order by ends`)).rows.map((row) => row.ends);
  const [first, second] = await Promise.all([1, 2].map(() => store.lease('d', 'r0', windowSet, 1, 3)));
  expect(await giveBack(store, first as LeaseGrant, clock.now() + 10_000.7)).toBe(true);
  expect(await ends()).toEqual([1_000_000_011]);
  const late = furtherOf(second as LeaseGrant);
  expect(await store.settleOnce(late, 0, newReceipt(), clock.now() - 1)).toBe(false);
  clock.advance(11_000);
  // Without an end, it is remembered as long as its windows last.
  expect(await store.settleOnce(late, 0, newReceipt())).toBe(true);
  expect(await ends()).toEqual([1_000_086_400]);
});
