import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { PGlite } from '@electric-sql/pglite';
import { UserError } from '../domain/user-error.ts';
import type { Database } from './database.ts';
import { type DirectoryLock, lockDirectory } from './directory-lock.ts';
import { createSpaceCheck } from './disk-space.ts';
import { overPglite } from './pglite.ts';
import { unpackTemplate } from './template.ts';

const DATABASE = 'database';
/** Exists while the folder of the database is being made. */
const INCOMPLETE = 'database.incomplete';

/** A data directory that this process uses alone. */
export interface DataDirectory {
  /** Absolute. */
  readonly path: string;
  /** Whether the database does not exist yet. */
  readonly isNew: boolean;
  close(): Promise<void>;
}

/** PostgreSQL in this process. */
export interface EmbeddedDatabase {
  readonly db: Database;
  /** The whole database as a `tar.gz`, between two statements. */
  dump(): Promise<Uint8Array>;
}

/**
 * Makes the directory if it is missing, and locks it.
 * @throws UserError if it cannot be written, or if another process uses it
 */
export async function openDataDirectory(folder: string): Promise<DataDirectory> {
  const path = resolve(folder);
  let lock: DirectoryLock;
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 });
    lock = await lockDirectory(path);
  } catch (cause) {
    if (cause instanceof UserError) throw cause;
    const { code } = cause as NodeJS.ErrnoException;
    throw new UserError(`DATA_DIR: cannot use ${path} (${code}). It must be a directory that this user may write.`, 2, {
      cause,
    });
  }
  if (existsSync(join(path, INCOMPLETE))) {
    rmSync(join(path, DATABASE), { recursive: true, force: true });
    rmSync(join(path, INCOMPLETE), { force: true });
  }
  return { path, isNew: !existsSync(join(path, DATABASE)), close: () => lock.release() };
}

/** The folder of the database in a data directory. */
export const databaseFolderIn = (directory: string): string => join(directory, DATABASE);

/**
 * Opens the database of a data directory. A new database is loaded from the template, which takes a third of the time
 * of PostgreSQL's own initialisation, and half of its memory.
 * @param template a dump of a migrated database, if the build made one
 */
export async function openDatabase(
  { path, isNew }: DataDirectory,
  template: Uint8Array | undefined,
): Promise<EmbeddedDatabase> {
  const folder = databaseFolderIn(path);
  const checkSpace = createSpaceCheck(path);
  checkSpace();
  if (!isNew) return fromPglite(await openPglite(folder), checkSpace);
  const marker = join(path, INCOMPLETE);
  writeFileSync(marker, '');
  const pglite = await createPglite(folder, template);
  rmSync(marker);
  return fromPglite(pglite, checkSpace);
}

/** Opens a database in memory, for tests and for the template. */
export async function openInMemory(template?: Uint8Array): Promise<EmbeddedDatabase> {
  return fromPglite(await PGlite.create(template === undefined ? {} : { loadDataDir: blobOf(template) }));
}

/** Loads a dump into a folder that does not exist yet. */
export async function loadDump(folder: string, dump: Uint8Array): Promise<EmbeddedDatabase> {
  return fromPglite(await PGlite.create(folder, { loadDataDir: blobOf(dump) }));
}

const blobOf = (bytes: Uint8Array): Blob => new Blob([new Uint8Array(bytes)]);

async function createPglite(folder: string, template: Uint8Array | undefined): Promise<PGlite> {
  if (template !== undefined) {
    try {
      unpackTemplate(folder, template);
      return await PGlite.create(folder);
    } catch {
      // A template of another version of PGlite: the migrations do the same in more time.
      rmSync(folder, { recursive: true, force: true });
    }
  }
  return PGlite.create(folder);
}

async function openPglite(folder: string): Promise<PGlite> {
  try {
    return await PGlite.create(folder);
  } catch (cause) {
    throw new UserError(
      `DATA_DIR: the database in ${folder} does not open: ${(cause as Error).message}. The command "restore" takes a file of the folder backups.`,
      1,
      { cause },
    );
  }
}

const fromPglite = (pglite: PGlite, checkSpace?: () => void): EmbeddedDatabase => ({
  db: overPglite(pglite, checkSpace),
  dump: async () => {
    checkSpace?.();
    // After a restore, changes that are in the data files need not be replayed from the log.
    await pglite.exec('checkpoint');
    const dump = await pglite.dumpDataDir('gzip');
    return new Uint8Array(await dump.arrayBuffer());
  },
});
