import pg from 'pg';
import postgres from 'postgres';
import { describe, expect, it } from 'vitest';
import { databaseOf, type PostgresClient } from '../../../src/stores/postgres/client.ts';
import { migrate, sql } from '../../../src/stores/postgres/schema.ts';
import { CLIENTS, migrated, sharedUrl } from '../../support/postgres.ts';

describe.each(Object.entries(CLIENTS))('%s', (name, create) => {
  const client = create();
  const database = databaseOf('client', client);
  const schema = `clients ${name}`.replace(/[^a-z]/g, '_');

  it('returns booleans, null and text', async () => {
    const text = `select $1::text::bigint as big, $1::text::int as int, $2::text::boolean as yes, not $2::text::boolean as no,
      null as none, $3::text as text, json_build_array(1)::text as json, $4::text as empty`;
    const values = ['9007199254740993', 'true', 'ü"\\\n', null];
    await expect(database.query(text.replace('$1::text::int as int', '5 as int'), values)).resolves.toEqual([
      { big: '9007199254740993', int: '5', yes: true, no: false, none: null, text: 'ü"\\\n', json: '[1]', empty: null },
    ]);
  });

  it('runs several statements and returns the rows of the last, if there are no parameters', async () => {
    await expect(database.query('create temp table headgate_tmp (a int); select 1 as one', [])).resolves.toEqual([
      { one: '1' },
    ]);
  });

  it('commits a transaction, and rolls it back if the work rejects or a statement failed', async () => {
    await migrated(client, schema);
    const count = async () => Number((await database.query(`select version from "${schema}".meta`, []))[0]?.version);
    const set = (version: number) => `update "${schema}".meta set version = ${version}`;
    const result = await database.transaction(async (connection, native) => {
      await connection.query(set(7), []);
      expect(native).toBeTypeOf(name === 'postgres.js' ? 'function' : 'object');
      // A store needs a client that outlives the transaction.
      expect(() => databaseOf('client', native as PostgresClient)).toThrow(
        /an open transaction|one connection of a pool/,
      );
      const [row] = await connection.query('select $1::text as value, current_setting($2::text) as level', [
        'x',
        'transaction_isolation',
      ]);
      return row;
    }, 'serializable');
    expect(result).toEqual({ value: 'x', level: 'serializable' });
    expect(await count()).toBe(7);
    const thrown = new Error('mine');
    const failing = database.transaction(async (connection) => {
      await connection.query(set(8), []);
      throw thrown;
    });
    await expect(failing).rejects.toBe(thrown);
    const swallowing = database.transaction(async (connection) => {
      await connection.query(set(9), []);
      await connection.query('select 1/0', []).catch(() => undefined);
      return 1;
    });
    await expect(swallowing).rejects.toThrow();
    expect(await count()).toBe(7);
  });

  it('migrates once, also if several do it at the same time', async () => {
    await database.query(`drop schema if exists "${schema}" cascade`, []);
    await Promise.all([migrate(client, { schema }), migrate(client, { schema }), migrate(client, { schema })]);
    await migrate(client, { schema });
    await expect(database.query(`select * from "${schema}".meta`, [])).resolves.toEqual([
      { is_only: true, version: '3', oldest: '1' },
    ]);
  });

  it('creates the same from the printed SQL', async () => {
    await database.query(`drop schema if exists "${schema}" cascade`, []);
    await database.query(sql({ schema }), []);
    await migrate(client, { schema });
    await expect(database.query(`select version from "${schema}".meta`, [])).resolves.toEqual([{ version: '3' }]);
  });
});

it('rows of postgres.js do not depend on its transformations and parsers', async () => {
  const client = postgres(sharedUrl(), {
    transform: { ...postgres.pascal, undefined: null },
    types: { number: { to: 23, from: [20, 23], parse: () => 'wrong', serialize: String } },
  });
  await expect(
    databaseOf('client', client).query('select 5::bigint as five, $1::text as text', ['x']),
  ).resolves.toEqual([{ five: '5', text: 'x' }]);
  await client.end();
});

it.each([
  ['null', null, /must be a Pool of pg/],
  ['an address', 'postgres://user:secret@host/db', /must be a Pool of pg[^:]*"postgres:\/\/…"/],
  ['a Client of pg', new pg.Client(), /one connection: pass a Pool/],
  ['a Drizzle database', { execute() {}, select() {}, transaction() {} }, /Drizzle database: pass its \$client/],
  ['a Kysely database', { selectFrom() {}, executeQuery() {} }, /Kysely/],
  ['a Prisma client', { $queryRawUnsafe() {} }, /Prisma/],
  ['a TypeORM data source', { createQueryRunner() {}, query() {} }, /TypeORM/],
])('refuses %s', (_, client, message) => {
  expect(() => databaseOf('client', client as unknown as PostgresClient)).toThrow(message);
});

it.each(['', '1a', 'pg_x', 'a"b', 'a$$b', `a${'b'.repeat(63)}`, 5 as unknown as string])(
  'refuses the schema %j',
  (schema) => {
    expect(() => sql({ schema })).toThrow(/schema: must be 1 to 63/);
  },
);
