import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Applications } from '../../src/applications/applications.ts';
import { backUpNightly, backupsIn, nextBackupAt, restoreBackup, writeBackup } from '../../src/db/backups.ts';
import { lockDirectory } from '../../src/db/directory-lock.ts';
import { type DataDirectory, openDatabase, openDataDirectory } from '../../src/db/embedded.ts';
import { migrate } from '../../src/db/migrate.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const parent = temporaryFolder();
const template = readFileSync(new URL('../../dist/template.tar.gz', import.meta.url));
const NOW = Date.parse('2026-01-05T12:00:00Z');
const DAY = 86_400_000;

/** Opens the database of a directory for one task. */
async function using<T>(
  folder: string,
  task: (
    database: Awaited<ReturnType<typeof openDatabase>> & { applications: Applications; directory: DataDirectory },
  ) => Promise<T>,
  from: Uint8Array | undefined = template,
): Promise<T> {
  const directory = await openDataDirectory(folder);
  const database = await openDatabase(directory, from);
  await migrate(database.db);
  try {
    return await task({ ...database, applications: new Applications(database.db, Date.now), directory });
  } finally {
    await database.db.destroy();
    await directory.close();
  }
}

test('what is stored is there after the next start', async () => {
  const folder = join(parent, 'kept');
  await using(folder, ({ applications }) => applications.create('Shop', 'production'));
  expect(await using(folder, ({ applications }) => applications.findOldest('Shop'))).toMatchObject({ name: 'Shop' });
});

test('a template has the whole schema, and without it the migrations make the same', async () => {
  const directory = await openDataDirectory(join(parent, 'from-template'));
  const { db } = await openDatabase(directory, template);
  expect(await migrate(db)).toEqual([]);
  const columns = (await db.introspection.getTables()).map(({ name, columns }) => [name, columns]);
  await db.destroy();
  await directory.close();
  await using(
    join(parent, 'no-template'),
    async ({ db: other }) =>
      expect((await other.introspection.getTables()).map(({ name, columns }) => [name, columns])).toEqual(columns),
    undefined,
  );
});

test('a template that cannot be loaded is ignored', async () => {
  const file = await using(
    join(parent, 'bad-template'),
    async ({ applications }) => applications.create('Shop', 'production'),
    Buffer.from('no archive'),
  );
  expect(file.name).toBe('Shop');
});

test('a database that was not finished is made again', async () => {
  const folder = join(parent, 'unfinished');
  mkdirSync(join(folder, 'database'), { recursive: true });
  writeFileSync(join(folder, 'database', 'PG_VERSION'), '18\n');
  writeFileSync(join(folder, 'database.incomplete'), '');
  await using(folder, async ({ applications, directory }) => {
    expect(directory.isNew).toBe(true);
    expect(await applications.isEmpty()).toBe(true);
  });
});

test('a directory that cannot be made is an error that names it', async () => {
  const file = join(parent, 'a-file');
  writeFileSync(file, '');
  await expect(openDataDirectory(join(file, 'data'))).rejects.toMatchObject({
    exitCode: 2,
    message: expect.stringMatching(/^DATA_DIR: cannot use .*a-file\/data \(ENOTDIR\)/),
  });
});

test('a locked directory is refused with the pid of its user, until the lock is released', async () => {
  const folder = join(parent, 'locked');
  mkdirSync(folder);
  const lock = await lockDirectory(folder);
  await expect(lockDirectory(folder)).rejects.toMatchObject({
    exitCode: 2,
    message: expect.stringContaining(`pid ${process.pid}`),
  });
  await lock.release();
  expect(readdirSync(folder)).toEqual([]);
  await (await lockDirectory(folder)).release();
});

test('of ten that lock a directory at the same time, one succeeds', async () => {
  const folder = join(parent, 'raced');
  mkdirSync(folder);
  const results = await Promise.allSettled(Array.from({ length: 10 }, () => lockDirectory(folder)));
  const locks = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
  expect(locks).toHaveLength(1);
  expect(readdirSync(folder)).toHaveLength(1);
  await locks[0]?.release();
});

test('a directory with a path too long for a socket can be locked', async () => {
  const folder = join(parent, 'x'.repeat(120), 'y'.repeat(120));
  mkdirSync(folder, { recursive: true });
  const lock = await lockDirectory(folder);
  await expect(lockDirectory(folder)).rejects.toThrow(`pid ${process.pid}`);
  await lock.release();
  await (await lockDirectory(folder)).release();
});

test('a client of the lock that says nothing does not disturb it', async () => {
  const folder = join(parent, 'silent');
  mkdirSync(folder);
  const lock = await lockDirectory(folder);
  const [name = ''] = readdirSync(folder);
  const socket = connect({ path: join(folder, name), allowHalfOpen: true });
  await new Promise((resolve) => socket.on('connect', resolve));
  socket.destroy();
  await expect(lockDirectory(folder)).rejects.toThrow(/another process/);
  await lock.release();
});

test('a backup restores the database as it was, and the database of before is kept', async () => {
  const folder = join(parent, 'restored');
  const file = await using(folder, async ({ applications, directory, ...database }) => {
    await applications.create('Before', 'production');
    const written = await writeBackup(directory.path, database, NOW);
    await applications.create('After', 'production');
    return written;
  });
  const directory = await openDataDirectory(folder);
  const before = await restoreBackup(directory, file, NOW);
  await directory.close();
  expect(existsSync(join(before ?? '', 'PG_VERSION'))).toBe(true);
  await using(folder, async ({ applications }) => {
    expect(await applications.findOldest('Before')).toBeDefined();
    expect(await applications.findOldest('After')).toBeUndefined();
  });
});

test('a file that is not a backup changes nothing', async () => {
  const folder = join(parent, 'not-restored');
  await using(folder, ({ applications }) => applications.create('Shop', 'production'));
  const file = join(parent, 'not-a-backup');
  writeFileSync(file, 'no archive');
  const directory = await openDataDirectory(folder);
  await expect(restoreBackup(directory, file, NOW)).rejects.toThrow(/is not a backup of this service/);
  await expect(restoreBackup(directory, join(parent, 'nothing'), NOW)).rejects.toThrow(/cannot be read \(ENOENT\)/);
  await directory.close();
  expect(readdirSync(folder)).toEqual(['database']);
  expect(await using(folder, ({ applications }) => applications.findOldest('Shop'))).toBeDefined();
});

test('the last three backups are kept, and a part of a broken one is removed', async () => {
  const folder = join(parent, 'several');
  await using(folder, async ({ directory: { path }, ...database }) => {
    mkdirSync(join(path, 'backups'));
    writeFileSync(join(path, 'backups', 'backup-2025-12-31T00-00-00-000Z.tar.gz.part'), 'half');
    const written: string[] = [];
    for (const day of [0, 1, 2, 3]) written.push(await writeBackup(path, database, NOW + day * DAY));
    expect(backupsIn(path)).toEqual(written.slice(1));
    expect(readdirSync(join(path, 'backups'))).toHaveLength(3);
  });
});

test('backups are due at 3:00, or soon if the last one is old or missing', () => {
  const now = new Date(2026, 0, 5, 12).getTime();
  expect(new Date(nextBackupAt(now, now - 9 * 3_600_000))).toEqual(new Date(2026, 0, 6, 3));
  expect(new Date(nextBackupAt(new Date(2026, 0, 5, 1).getTime(), now - DAY))).toEqual(new Date(2026, 0, 5, 3));
  expect(nextBackupAt(now, undefined)).toBe(now + 60_000);
  expect(nextBackupAt(now, now - 2 * DAY)).toBe(now + 60_000);
});

test('nightly backups stop at once if none is running', async () => {
  await using(join(parent, 'nightly'), async ({ directory: { path }, ...database }) => {
    const reports: unknown[] = [];
    await backUpNightly(path, database, (error) => reports.push(error)).stop();
    expect(reports).toEqual([]);
    expect(backupsIn(path)).toEqual([]);
  });
});
