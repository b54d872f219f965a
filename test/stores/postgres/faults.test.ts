import { afterFile } from 'headgate-testbed/after-file';
import { startPostgres } from 'headgate-testbed/postgres-server';
import { afterEach, expect, it } from 'vitest';
import type { Decision } from '../../../src/core/decision.ts';
import type { LeaseGrant } from '../../../src/core/ports.ts';
import { createPostgresStore, type PostgresStoreOptions } from '../../../src/stores/postgres/limits.ts';
import { migrate } from '../../../src/stores/postgres/schema.ts';
import { furtherOf } from '../../../src/testing/history-run.ts';
import { newPool } from '../../support/postgres.ts';
import { windowSetFrom } from '../../support/window-set.ts';

const DEADLINE_MS = 300;
/** How much later an answer may come on a busy machine. */
const BUSY_MS = 5_000;

const server = await startPostgres();
afterFile(() => server.stop());
const pool = newPool({ connectionString: server.url(), max: 5 });
await migrate(pool);
const admin = newPool({ connectionString: server.url(), max: 1 });
afterEach(() => server.thaw());

const newStore = (options: PostgresStoreOptions = {}) =>
  createPostgresStore(pool, { deadlineMs: DEADLINE_MS, logger: false, denyCacheMaxMs: 0, ...options });
const windowSet = windowSetFrom([], ['5/1h']);

/** S32: a lease that the store could not ask for is one request. */
const isOneDegraded = ({ decision, granted }: LeaseGrant): void =>
  expect([decision.degraded, decision.accepted, granted]).toEqual([true, true, 1]);
const RECEIPT = 'r'.repeat(22);

/** Waits until PostgreSQL decides again. */
const recovered = (store: ReturnType<typeof newStore>) =>
  expect
    .poll(async () => (await store.consume('recovered', 'r', windowSetFrom([], ['1000000/1h']), 1)).degraded, {
      timeout: 30_000,
    })
    .toBe(false);

it('a killed server lets this process decide at once, and its durable counters are there again afterwards', async () => {
  const store = newStore({ durable: true, deadlineMs: 30_000 });
  const refusing = newStore({ onStoreFailure: 'refuse' });
  expect((await store.consume('killed', 'r', windowSet, 2)).shown?.remaining).toBe(3);
  const leased = await store.lease('leased', 'r', windowSet, 1, 4);
  await server.kill();
  isOneDegraded(await newStore().lease('leased', 'r', windowSet, 1, 4));
  await expect(newStore().settleOnce(furtherOf(leased), 0, RECEIPT)).rejects.toMatchObject({ sent: false });
  const decisions: Decision[] = [];
  for (let i = 0; i < 8; i++) decisions.push(await store.consume('killed', 'r', windowSet, 1));
  expect(decisions.map(({ degraded }) => degraded)).toEqual(Array(8).fill(true));
  expect(decisions.filter(({ accepted }) => accepted)).toHaveLength(5);
  // Each tried the server until its circuit breaker opened.
  expect(store.stats()).toMatchObject({ degraded: 8, breaker: 'open' });
  const error = await Promise.resolve(refusing.consume('killed', 'r', windowSet, 1)).catch((thrown) => thrown);
  expect(error).toMatchObject({ code: 'store_unavailable', sent: false });
  await expect(refusing.ready({ timeoutMs: 200 })).rejects.toMatchObject({
    code: 'store_unavailable',
    message: expect.stringMatching(/no answer within 200 ms/),
  });
  const isReady = refusing.ready({ timeoutMs: 60_000 });
  await server.restart();
  await isReady;
  await recovered(store);
  expect((await store.consume('killed', 'r', windowSet, 1)).shown?.remaining).toBe(2);
  expect(await store.settleOnce(furtherOf(leased), 0, RECEIPT)).toBe(true);
  expect((await store.consume('leased', 'r', windowSet, 1)).shown?.remaining).toBe(3);
});

it('a frozen server is given up within the deadline, for any number of requests, and nothing happens later', async () => {
  const store = newStore();
  const settled = await store.consume('settled', 'r', windowSet, 1);
  const leased = await store.lease('frozen', 'r', windowSet, 1, 4);
  server.freeze();
  const start = performance.now();
  const decisions = await Promise.all(
    Array.from({ length: 200 }, (_, i) => store.consume(`frozen ${i}`, 'r', windowSet, 1)),
  );
  expect(performance.now() - start).toBeLessThan(DEADLINE_MS + BUSY_MS);
  expect(decisions.every(({ degraded, accepted }) => degraded && accepted)).toBe(true);
  const lost = [
    Promise.resolve(store.settle(settled, 0)).catch(({ code }) => code),
    store.settleOnce(furtherOf(leased), 0, RECEIPT).catch(({ code }) => code),
  ];
  isOneDegraded(await store.lease('frozen', 'r', windowSet, 1, 4));
  for (const code of await Promise.all(lost)) expect(code).toMatch(/^store_/);
  server.thaw();
  await recovered(store);
  const [window] = await store.peek('frozen 199', 'r', windowSet);
  expect(window?.remaining).toBe(5);
});

it('a server that became read-only is an outage, which `admit` marks and `refuse` reports', async () => {
  await admin.query('alter system set default_transaction_read_only = on');
  await admin.query('select pg_reload_conf()');
  try {
    const logged: string[] = [];
    const store = newStore({ onStoreFailure: 'admit', deadlineMs: 30_000, logger: (text) => logged.push(text) });
    await expect
      .poll(async () => (await store.consume('read-only', 'r', windowSet, 1)).degraded, { timeout: 30_000 })
      .toBe(true);
    isOneDegraded(await store.lease('read-only', 'r', windowSet, 1, 4));
    expect(logged).toEqual(['headgate: the store for rate limits fails, so every request is accepted']);
    const refusing = newStore({ onStoreFailure: 'refuse', deadlineMs: 30_000 });
    await expect(Promise.resolve(refusing.consume('read-only', 'r', windowSet, 1))).rejects.toMatchObject({
      code: 'store_unavailable',
      sent: false,
      cause: { code: '25006' },
    });
    await expect(refusing.block({ account: 'read-only' }, { forMs: 60_000 })).rejects.toMatchObject({
      code: 'store_unavailable',
    });
  } finally {
    await admin.query('alter system reset default_transaction_read_only');
    await admin.query('select pg_reload_conf()');
  }
  await recovered(newStore());
});
