import { afterFile } from 'headgate-testbed/after-file';
import { startPgBouncer } from 'headgate-testbed/pgbouncer';
import { startPostgres } from 'headgate-testbed/postgres-server';
import postgres from 'postgres';
import { describe, expect, it } from 'vitest';
import type { PostgresClient } from '../../../src/stores/postgres/client.ts';
import { createPostgresStore } from '../../../src/stores/postgres/limits.ts';
import { migrate } from '../../../src/stores/postgres/schema.ts';
import { newPool } from '../../support/postgres.ts';
import { windowSetFrom } from '../../support/window-set.ts';

const server = await startPostgres('-c', 'max_connections=12');
afterFile(() => server.stop());
const pool = newPool({ connectionString: server.url(), max: 3 });
await migrate(pool);
const windowSet = windowSetFrom(['50/1h'], ['100/1d'], 'account');

it('statement_timeout is an outage in which nothing is charged', async () => {
  await pool.query('drop role if exists hasty');
  await pool.query(`create role hasty login superuser; alter role hasty set statement_timeout = '100ms'`);
  const hasty = newPool({ connectionString: server.url().replace('postgres@', 'hasty@') });
  const store = createPostgresStore(hasty, { deadlineMs: 30_000, onStoreFailure: 'refuse', logger: false });
  await store.consume('hasty', 'r', windowSet, 1);
  const holder = await pool.connect();
  await holder.query('begin; select from headgate.counters for update');
  await expect(Promise.resolve(store.consume('hasty', 'r', windowSet, 1))).rejects.toMatchObject({
    code: 'store_unavailable',
    sent: false,
    cause: { code: '57014' },
  });
  await holder.query('rollback');
  holder.release();
  expect((await store.peek('hasty', 'r', windowSet))[0]?.remaining).toBe(49);
});

it('a server without a free connection is an outage, and `ready` waits for one', async () => {
  const greedy = newPool({ connectionString: server.url(), max: 20 });
  // Two of the 12 connections are for superusers, and the pools of this file have some.
  const taken = await Promise.allSettled(Array.from({ length: 12 }, () => greedy.connect()));
  const own = newPool({ connectionString: server.url(), max: 3 });
  const store = createPostgresStore(own, { deadlineMs: 2_000, logger: false });
  const decision = await store.consume('crowded', 'r', windowSet, 1);
  expect(decision).toMatchObject({ accepted: true, degraded: true });
  const isReady = store.ready({ timeoutMs: 60_000 });
  for (const each of taken) if (each.status === 'fulfilled') each.value.release(true);
  await isReady;
  await expect.poll(async () => (await store.consume('crowded', 'r', windowSet, 1)).degraded).toBe(false);
});

it('connections that the server ends one by one lose no decision', async () => {
  const store = createPostgresStore(pool, { deadlineMs: 30_000, onStoreFailure: 'refuse', logger: false });
  const killer = newPool({ connectionString: server.url(), max: 1 });
  await store.reset({});
  let charged = 0;
  let unknown = 0;
  const wide = windowSetFrom([], ['1000000/1h']);
  for (let round = 0; round < 20; round++) {
    const consuming = Array.from({ length: 20 }, async () => {
      const decision = await Promise.resolve(store.consume('ended', 'r', wide, 1)).catch(() => undefined);
      if (decision === undefined) unknown++;
      else charged++;
    });
    await killer.query(
      `select pg_terminate_backend(pid) from pg_stat_activity where query like '%consume_1%' and pid <> pg_backend_pid()`,
    );
    await Promise.all(consuming);
  }
  // The pool can still have a connection that ended.
  let counted = 0;
  await expect
    .poll(async () => {
      const [window] = await store.peek('ended', 'r', wide);
      counted = 1_000_000 - (window?.remaining ?? 0);
      return counted;
    })
    .toBeGreaterThan(0);
  expect(counted).toBeGreaterThanOrEqual(charged);
  expect(counted).toBeLessThanOrEqual(charged + unknown);
});

describe('PgBouncer in transaction mode', async () => {
  const pooler = await startPgBouncer(server.port, 3);
  afterFile(() => pooler.stop());
  const clients: Record<string, () => PostgresClient> = {
    pg: () => newPool({ connectionString: pooler.url(), max: 20 }),
    'postgres.js without prepared statements': () => {
      const sql = postgres(pooler.url(), { prepare: false, max: 20, fetch_types: false });
      afterFile(() => sql.end());
      return sql;
    },
  };

  it.each(Object.entries(clients))('%s decides and counts as without it', async (name, create) => {
    const client = create();
    const schema = `pooled_${name.slice(0, 2)}`;
    await Promise.all([migrate(client, { schema }), migrate(client, { schema })]);
    const stores = Array.from({ length: 5 }, () =>
      createPostgresStore(client, { schema, deadlineMs: 30_000, onStoreFailure: 'refuse', denyCacheMaxMs: 0 }),
    );
    await Promise.all(stores.map((store) => store.ready()));
    const decisions = await Promise.all(
      Array.from({ length: 300 }, async (_, i) => stores[i % 5]?.consume(`a${i % 2}`, `r${i % 4}`, windowSet, 1)),
    );
    expect(decisions.filter((decision) => decision?.accepted)).toHaveLength(200);
    // Nothing of one call stays in the session that another client gets.
    const { rows } = await newPool({ connectionString: pooler.url() }).query(
      `select current_setting('synchronous_commit') as sync, current_setting('lock_timeout') as lock`,
    );
    expect(rows[0]).toEqual({ sync: 'on', lock: '0' });
  });
});
