import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { UserError } from '../domain/user-error.ts';
import { type DataDirectory, databaseFolderIn, type EmbeddedDatabase, loadDump } from './embedded.ts';
import { migrate } from './migrate.ts';

const FOLDER = 'backups';
const FORM = /^backup-[\d-]+T[\d-]+Z\.tar\.gz$/;
const KEPT = 3;
const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
/** After a start that finds no recent backup, so that the start itself is not slower. */
const AFTER_START_MS = 60_000;
const HOUR_OF_DAY = 3;

/** A time as part of a name of a file, which sorts by time. */
const stampOf = (nowMs: number): string => new Date(nowMs).toISOString().replace(/[:.]/g, '-');

/** The backups of a data directory, oldest first. */
export function backupsIn(directory: string): readonly string[] {
  const folder = join(directory, FOLDER);
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((name) => FORM.test(name))
    .sort()
    .map((name) => join(folder, name));
}

/**
 * Writes a backup of the database, and removes all but the last three. A file that bears the name of a backup is whole.
 * @returns its path
 */
export async function writeBackup(directory: string, database: EmbeddedDatabase, nowMs: number): Promise<string> {
  const folder = join(directory, FOLDER);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const path = join(folder, `backup-${stampOf(nowMs)}.tar.gz`);
  const draft = `${path}.part`;
  for (const name of readdirSync(folder)) if (name.endsWith('.part')) rmSync(join(folder, name), { force: true });
  await writeFile(draft, await database.dump(), { mode: 0o600, flush: true });
  renameSync(draft, path);
  for (const old of backupsIn(directory).slice(0, -KEPT)) rmSync(old, { force: true });
  return path;
}

/** When the next backup is due: the next night at 3:00 local time, or soon if the last one is more than a day old. */
export function nextBackupAt(nowMs: number, lastMs: number | undefined): number {
  if (lastMs === undefined || nowMs - lastMs > DAY_MS + HOUR_MS) return nowMs + AFTER_START_MS;
  const night = new Date(nowMs);
  night.setHours(HOUR_OF_DAY, 0, 0, 0);
  if (night.getTime() <= nowMs) night.setDate(night.getDate() + 1);
  return night.getTime();
}

/** Makes a backup each night until `stop`. A failure is reported, and the next night is another try. */
export function backUpNightly(
  directory: string,
  database: EmbeddedDatabase,
  report: (error: unknown, path: string | undefined) => void,
): { stop(): Promise<void> } {
  let timer: NodeJS.Timeout;
  let running: Promise<void> = Promise.resolve();
  const schedule = (lastMs: number | undefined): void => {
    const now = Date.now();
    timer = setTimeout(run, Math.max(0, nextBackupAt(now, lastMs) - now)).unref();
  };
  const run = (): void => {
    const startedAt = Date.now();
    running = writeBackup(directory, database, startedAt)
      .then(
        (path) => report(undefined, path),
        (error: unknown) => report(error, undefined),
      )
      .then(() => schedule(startedAt));
  };
  const last = backupsIn(directory).at(-1);
  schedule(last === undefined ? undefined : statSync(last).mtimeMs);
  return {
    stop: async () => {
      clearTimeout(timer);
      await running;
      clearTimeout(timer);
    },
  };
}

/**
 * Replaces the database of a data directory by a backup. The old database is kept beside it.
 * @returns the folder of the old database, if there was one
 * @throws UserError if the file is not a backup that this version of the service can use; nothing is changed then
 */
export async function restoreBackup(
  { path: directory, isNew }: DataDirectory,
  file: string,
  nowMs: number,
): Promise<string | undefined> {
  const folder = databaseFolderIn(directory);
  const draft = `${folder}.restoring`;
  rmSync(draft, { recursive: true, force: true });
  try {
    const { db } = await loadDump(draft, readBackup(file));
    try {
      await migrate(db);
    } finally {
      await db.destroy();
    }
  } catch (cause) {
    rmSync(draft, { recursive: true, force: true });
    if (cause instanceof UserError) throw cause;
    throw new UserError(`${file} is not a backup of this service: ${(cause as Error).message}`, 1, { cause });
  }
  const before = isNew ? undefined : `${folder}.before-${stampOf(nowMs)}`;
  if (before !== undefined) renameSync(folder, before);
  renameSync(draft, folder);
  return before;
}

function readBackup(file: string): Uint8Array {
  try {
    return readFileSync(file);
  } catch (cause) {
    throw new UserError(`${file}: cannot be read (${(cause as NodeJS.ErrnoException).code}).`, 2, { cause });
  }
}
