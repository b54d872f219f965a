import pg from 'pg';
import postgres from 'postgres';
import { expect, it } from 'vitest';
import { createPostgresClaimStore } from '../../../src/stores/postgres/claims.ts';
import type { PostgresClient } from '../../../src/stores/postgres/client.ts';
import { createPostgresStore } from '../../../src/stores/postgres/limits.ts';
import { migrate } from '../../../src/stores/postgres/schema.ts';
import { migrated, newPool, sharedUrl } from '../../support/postgres.ts';
import { windowSetFrom } from '../../support/window-set.ts';

const admin = newPool();
const windowSet = windowSetFrom([], ['5/1h']);

/** Checks that no call of a store admits a request, and that `ready` fails at once. */
async function expectSetupError(client: PostgresClient, schema: string, message: RegExp, peeks = true): Promise<void> {
  const store = createPostgresStore(client, { schema, deadlineMs: 120_000, onStoreFailure: 'admit', logger: false });
  const expected = { code: 'store_setup', message: expect.stringMatching(message) };
  // More calls than open the circuit breaker.
  for (let i = 0; i < 7; i++) {
    await expect(Promise.resolve(store.consume('a', 'r', windowSet, 1))).rejects.toMatchObject(expected);
  }
  if (peeks) await expect(Promise.resolve(store.peek('a', 'r', windowSet))).rejects.toMatchObject(expected);
  await expect(store.ready({ timeoutMs: 60_000 })).rejects.toMatchObject(expected);
  expect(store.stats()).toMatchObject({ degraded: 0, breaker: 'closed' });
}

/** A pool of a new user without rights. */
async function poolOf(role: string, ...settings: string[]): Promise<pg.Pool> {
  await admin.query(`drop role if exists ${role}`);
  await admin.query(`create role ${role} login`);
  for (const setting of settings) await admin.query(`alter role ${role} set ${setting}`);
  return newPool({ connectionString: sharedUrl().replace('postgres@', `${role}@`) });
}

it('a missing schema says to migrate', () =>
  expectSetupError(admin, 'nowhere', /^the schema "nowhere" is missing, or has another version: call migrate/));

it('an older schema says to migrate', async () => {
  await migrated(admin, 'older');
  await admin.query('update older.meta set version = 0; drop function older.consume_1; drop table older.counters');
  await expectSetupError(
    admin,
    'older',
    /^the schema "older" has version 0, and this library needs version 3: call mig/,
  );
});

it('a table that is missing for a new connection is an error of the set-up', async () => {
  await migrated(admin, 'renamed');
  await admin.query('alter table renamed.counters rename to elsewhere');
  const store = createPostgresStore(newPool(), { schema: 'renamed', deadlineMs: 120_000, onStoreFailure: 'admit' });
  const expected = { code: 'store_setup', message: expect.stringMatching(/^the schema "renamed" is missing, or has/) };
  await expect(Promise.resolve(store.consume('a', 'r', windowSet, 1))).rejects.toMatchObject(expected);
});

it('a schema of version 1 is brought to this version, and its claims stay', async () => {
  await migrated(admin, 'first');
  const id = { scope: 'app', key: 'k' };
  const begin = {
    token: 't',
    fingerprint: 'f',
    retentionMs: 60_000,
    leaseMs: 60_000,
    onOrphan: 'reject',
    dispatch: false,
  } as const;
  await createPostgresClaimStore(admin, { schema: 'first' }).begin(id, begin);
  await admin.query(
    `update first.meta set version = 1; drop table first.slots; drop function first.claims_2, first.write_rows_1,
      first.check_rows_1, first.settle_2, first.cooldown_1, first.put_block_1, first.slots_lock_1, first.slots_1`,
  );
  const rows = { complete: { mark: 'update first.meta set oldest = oldest from step' } };
  const store = createPostgresClaimStore(admin, { schema: 'first', rows });
  await expect(store.ready()).rejects.toMatchObject({
    code: 'store_setup',
    message: expect.stringMatching(/call migrate/),
  });
  await migrate(admin, { schema: 'first' });
  await store.ready();
  expect(await store.begin(id, { ...begin, token: 'u' })).toMatchObject({ kind: 'in_progress' });
});

it('a newer schema says to update headgate, to migrate too; a newer one that works with this version works', async () => {
  await migrated(admin, 'newer');
  await admin.query('update newer.meta set version = 7');
  const store = createPostgresStore(admin, { schema: 'newer', deadlineMs: 120_000 });
  await store.ready();
  expect((await store.consume('a', 'r', windowSet, 1)).accepted).toBe(true);
  await migrate(admin, { schema: 'newer' });
  await admin.query('update newer.meta set oldest = 6; drop function newer.consume_1; drop table newer.counters');
  await expectSetupError(admin, 'newer', /has version 7, which needs a library for version 6 or later, not 3: update/);
  await expect(migrate(admin, { schema: 'newer' })).rejects.toMatchObject({ code: 'store_setup' });
});

it('a user without rights is told so; the documented grants are enough', async () => {
  await migrated(admin, 'granted');
  const pool = await poolOf('headgate_reader');
  await expectSetupError(pool, 'granted', /^the schema "granted" cannot be used by this user/);
  await expect(migrate(pool, { schema: 'mine' })).rejects.toMatchObject({ code: 'store_setup' });
  await admin.query(`grant usage on schema granted to headgate_reader;
    grant select, insert, update, delete on all tables in schema granted to headgate_reader`);
  const store = createPostgresStore(pool, { schema: 'granted', deadlineMs: 120_000 });
  await store.ready();
  const decision = await store.consume('a', 'r', windowSet, 1);
  expect(await store.settle(decision, 0)).toBe(true);
  await store.block({ account: 'a' }, { forMs: 60_000 });
  expect(await store.blocked({ account: 'a' })).toBeDefined();
  await store.unblock({ account: 'a' });
  await store.reset({});
  // It finds that there is nothing to do.
  await migrate(pool, { schema: 'granted' });
});

it.each(['repeatable read', 'serializable'])('the isolation level %s as the default is an error', async (level) => {
  await migrated(admin, 'isolated');
  const role = `headgate_${level.replace(' ', '_')}`;
  const pool = await poolOf(role, `default_transaction_isolation = '${level}'`);
  await admin.query(`grant usage on schema isolated to ${role}; grant all on all tables in schema isolated to ${role}`);
  await expectSetupError(pool, 'isolated', /default_transaction_isolation|needs the isolation level/, false);
});

it('a database with another encoding is refused', async () => {
  await admin.query('drop database if exists latin');
  await admin.query(`create database latin encoding 'LATIN1' locale 'C' template template0`);
  const pool = newPool({ connectionString: sharedUrl().replace(/postgres$/, 'latin') });
  await expect(migrate(pool)).rejects.toMatchObject({ code: 'store_setup', message: expect.stringMatching(/LATIN1/) });
});

it('a missing database is an error of the set-up', () =>
  expectSetupError(
    newPool({ connectionString: sharedUrl().replace(/postgres$/, 'no_such') }),
    'x',
    /the database does not exist/,
  ));

it.each<[string, () => Promise<PostgresClient>]>([
  [
    'a pool of pg',
    async () => {
      const pool = new pg.Pool({ connectionString: sharedUrl() });
      await pool.end();
      return pool;
    },
  ],
  [
    'postgres.js',
    async () => {
      const sql = postgres(sharedUrl());
      await sql.end();
      return sql;
    },
  ],
  [
    'PGlite',
    async () => {
      const closed = () => Promise.reject(new Error('PGlite is closed'));
      return { query: closed, exec: closed, transaction: closed, closed: true };
    },
  ],
])('%s that was ended is an error of the set-up', async (_, create) => {
  await expectSetupError(await create(), 'ended', /^the client was ended: create a new one/);
});
