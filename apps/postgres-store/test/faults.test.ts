import { createWindowSet, StoreTimeoutError, StoreUnavailableError } from 'headgate/stores';
import { type PostgresServer, startPostgres } from 'headgate-testbed/postgres-server';
import { afterAll, afterEach, expect, test } from 'vitest';
import { createPostgresClaimStore, createPostgresStore, migrate } from '../src/index.ts';
import { newPool } from './support/pool.ts';

const DEADLINE_MS = 300;
/** How much later an error may come on a busy machine. */
const BUSY_MS = 3_000;

const server: PostgresServer = await startPostgres();
const pool = newPool(server.url(), { max: 5 });
await migrate(pool);
afterEach(() => server.thaw());
afterAll(() => server.stop());

const store = createPostgresStore(pool, { deadlineMs: DEADLINE_MS });
const claims = createPostgresClaimStore(pool, { deadlineMs: DEADLINE_MS });
const windowSet = createWindowSet([], [{ max: 5, durationMs: 3_600_000 }]);
const consume = (account: string) => Promise.resolve(store.consume(account, 'GET /', windowSet, 1));
const BEGIN = { token: 't', fingerprint: 'f', retentionMs: 60_000, leaseMs: 10_000, onOrphan: 'reject' as const };

/** The error of the call, and the time until it. */
async function failure(call: Promise<unknown>): Promise<{ error: unknown; ms: number }> {
  const start = performance.now();
  const error = await call.then(
    (value) => expect.unreachable(`returned ${JSON.stringify(value)}`),
    (thrown) => thrown,
  );
  return { error, ms: performance.now() - start };
}

test('a server that is killed is an error at once, and keeps its counters when it is started again', async () => {
  const before = await consume('acc_1');
  expect(before.shown?.remaining).toBe(4);
  await server.kill();
  const { error, ms } = await failure(consume('acc_1'));
  expect(error).toBeInstanceOf(StoreUnavailableError);
  expect((error as StoreUnavailableError).sent).toBe(false);
  expect(ms).toBeLessThan(DEADLINE_MS + BUSY_MS);
  await server.restart();
  await store.ready?.();
  expect((await consume('acc_1')).shown?.remaining).toBe(3);
});

test('a server that ends while it decides is an error that leaves open whether it decided', async () => {
  const holder = await pool.connect();
  holder.on('error', () => undefined);
  await holder.query('begin');
  await holder.query('select from headgate.counters for update');
  const patient = createPostgresStore(pool, { deadlineMs: 60_000 });
  const failed = failure(Promise.resolve(patient.consume('acc_1', 'GET /', windowSet, 1)));
  const waits = `select count(*) from pg_stat_activity where wait_event_type = 'Lock'`;
  await expect.poll(async () => (await pool.query(waits)).rows[0].count).toBe('1');
  await server.kill();
  holder.release(true);
  const { error } = await failed;
  expect(error).toBeInstanceOf(StoreUnavailableError);
  expect((error as StoreUnavailableError).sent).toBe(true);
  await server.restart();
  await store.ready?.();
});

test('a frozen server is an error within the deadline, for any number of calls, and works again afterwards', async () => {
  await consume('acc_1');
  server.freeze();
  const failures = await Promise.all(Array.from({ length: 40 }, (_, i) => failure(consume(`frozen ${i % 30}`))));
  for (const { error, ms } of failures) {
    expect(error instanceof StoreTimeoutError || error instanceof StoreUnavailableError).toBe(true);
    expect(ms).toBeLessThan(DEADLINE_MS + BUSY_MS);
  }
  const sent = failures.filter(({ error }) => error instanceof StoreTimeoutError);
  expect(sent.length).toBeGreaterThan(0);
  // Calls without a connection did not leave the process.
  const kept = failures.filter(({ error }) => error instanceof StoreUnavailableError && !error.sent);
  expect(sent.length + kept.length).toBe(40);
  expect(sent.length).toBeLessThanOrEqual(5);
  server.thaw();
  await store.ready?.();
  expect((await consume('acc_2')).accepted).toBe(true);
});

test('P6: a begin with a mark that a frozen server reads later does nothing', async () => {
  const id = { scope: 'app', key: 'late' };
  // The store knows the time of the server from now on.
  const first = await claims.begin({ scope: 'app', key: 'first' }, { ...BEGIN, dispatch: true });
  expect(first).toMatchObject({ kind: 'claimed', dispatched: false });
  const second = await claims.begin({ scope: 'app', key: 'second' }, { ...BEGIN, dispatch: true });
  expect(second).toMatchObject({ kind: 'claimed', dispatched: true });
  server.freeze();
  const { error } = await failure(Promise.resolve(claims.begin(id, { ...BEGIN, dispatch: true })));
  expect(error).toBeInstanceOf(StoreTimeoutError);
  await new Promise((resolve) => setTimeout(resolve, DEADLINE_MS));
  server.thaw();
  await claims.ready?.();
  // The old connection ended: its command is executed by now.
  const others = `select count(*) from pg_stat_activity where backend_type = 'client backend' and state = 'active'`;
  await expect.poll(async () => (await pool.query(others)).rows[0].count).toBe('1');
  expect(await claims.inspect(id)).toBeUndefined();
});

test('ready waits until a server starts, at most for its time, and until its signal', async () => {
  await server.kill();
  const { error, ms } = await failure(Promise.resolve(store.ready?.({ timeoutMs: 300 })));
  expect(error).toBeInstanceOf(StoreUnavailableError);
  expect(ms).toBeLessThan(300 + BUSY_MS);
  const signal = AbortSignal.timeout(100);
  const aborted = await failure(Promise.resolve(store.ready?.({ timeoutMs: 60_000, signal })));
  expect(aborted.error).toBe(signal.reason);
  const isReady = Promise.resolve(store.ready?.({ timeoutMs: 60_000 }));
  await server.restart();
  await isReady;
});
