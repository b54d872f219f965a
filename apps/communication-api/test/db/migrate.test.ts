import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openServer } from '../../src/db/database.ts';
import { checkSchema, MIGRATION_NAMES, migrate } from '../../src/db/migrate.ts';
import { checkServer } from '../../src/db/server-version.ts';
import { DATABASES, type OpenDatabase } from '../support/databases.ts';
import { createTestDatabase } from '../support/test-database.ts';

describe.each(DATABASES)('migrations on %s', (_, open) => {
  let opened: OpenDatabase;
  beforeAll(async () => {
    opened = await open();
  });
  afterAll(() => opened.close());

  test('make every table, and do nothing the second time', async () => {
    const tables = await opened.db.introspection.getTables();
    expect(tables.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['accounts', 'api_keys', 'applications', 'auth_links', 'sends']),
    );
    expect(await migrate(opened.db)).toEqual([]);
    await checkSchema(opened.db);
  });

  test('a schema of a newer version is refused', async () => {
    await sql`insert into migrations (name, timestamp) values ('9999-future', 'now')`.execute(opened.db);
    await expect(migrate(opened.db)).rejects.toMatchObject({
      name: 'UserError',
      exitCode: 2,
      message: expect.stringContaining('9999-future'),
    });
  });
});

test('processes that migrate an empty server at the same time do so once', async () => {
  const { url, drop } = await createTestDatabase();
  const databases = Array.from({ length: 3 }, () => openServer(url, () => undefined));
  const ran = await Promise.all(databases.map(migrate));
  expect(ran.flat()).toEqual(MIGRATION_NAMES);
  await Promise.all(databases.map((db) => db.destroy()));
  await drop();
});

test('a server whose schema may not be changed must have every migration', async () => {
  const { url, drop } = await createTestDatabase();
  const db = openServer(url, () => undefined);
  await expect(checkSchema(db)).rejects.toThrow(/lacks (\d+) of \1 migrations/);
  await migrate(db);
  await checkSchema(db);
  await db.destroy();
  await drop();
});

test('a server that cannot be reached is named without its password', async () => {
  const url = 'postgres://user:hunter2@127.0.0.1:1/mail';
  const db = openServer(url, () => undefined);
  const error = await checkServer(db, url).catch((reason: Error) => reason);
  expect(error).toMatchObject({ name: 'UserError', exitCode: 1 });
  expect(String(error)).toMatch(/cannot use 127\.0\.0\.1:1\/mail: connect ECONNREFUSED/);
  expect(String(error)).not.toContain('hunter2');
  await db.destroy();
});
