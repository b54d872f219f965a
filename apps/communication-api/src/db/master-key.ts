import { randomBytes } from 'node:crypto';
import { closeSync, existsSync, fsyncSync, openSync, readFileSync, renameSync, rmSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { UserError } from '../domain/user-error.ts';
import type { MasterKey } from '../security/envelope.ts';

const FILE = 'master.key';
const KEY_BYTES = 32;
/** Each line looks like an entry of SECRET_KEYS. */
const FORM = /^([A-Za-z0-9]{1,16}):([A-Za-z0-9+/]{43}=)$/;

/**
 * The master keys of an embedded database, from `master.key` in the data directory, the current one first.
 * @param mayCreate whether a missing file is made: only if the database is new, since nothing else opens its secrets
 * @throws UserError if the file is missing or not readable as keys
 */
export function masterKeysIn(directory: string, mayCreate: boolean): readonly MasterKey[] {
  const path = join(directory, FILE);
  if (!existsSync(path)) {
    if (!mayCreate)
      throw new UserError(
        `${path} is missing, and the database contains secrets under that key. Put back your copy of the file, or set SECRET_KEYS to its lines, separated by commas.`,
        2,
      );
    write(path, [newKey('k1')]);
  }
  return read(path)
    .trim()
    .split(/\s*\n\s*/)
    .map((line) => {
      const [, id, encoded] = FORM.exec(line) ?? [];
      if (id === undefined || encoded === undefined)
        throw new UserError(`${path} is not a master key: expected lines <id>:<base64 of 32 bytes>.`, 2);
      return { id, key: Buffer.from(encoded, 'base64') };
    });
}

/** Puts a new key in front of the keys in `master.key`. The old keys stay: backups contain secrets under them. */
export function addMasterKey(directory: string): readonly MasterKey[] {
  const keys = masterKeysIn(directory, false);
  const numbers = keys.map(({ id }) => Number(/^k(\d+)$/.exec(id)?.[1] ?? 0));
  const all = [newKey(`k${Math.max(...numbers) + 1}`), ...keys];
  write(join(directory, FILE), all);
  return all;
}

const newKey = (id: string): MasterKey => ({ id, key: randomBytes(KEY_BYTES) });

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (cause) {
    throw new UserError(`${path}: cannot be read (${(cause as NodeJS.ErrnoException).code}).`, 2, { cause });
  }
}

/**
 * The file is complete, or as it was before, even if the machine stops: half a key would lose the database's secrets.
 */
function write(path: string, keys: readonly MasterKey[]): void {
  const draft = `${path}.new`;
  rmSync(draft, { force: true });
  const file = openSync(draft, 'wx', 0o600);
  try {
    writeSync(file, keys.map(({ id, key }) => `${id}:${Buffer.from(key).toString('base64')}\n`).join(''));
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(draft, path);
  syncDirectory(dirname(path));
}

/**
 * Without this, a power failure could bring back the old file, while the database contains secrets under the new key.
 */
function syncDirectory(path: string): void {
  // Windows cannot open a directory.
  if (process.platform === 'win32') return;
  const directory = openSync(path, 'r');
  try {
    fsyncSync(directory);
  } finally {
    closeSync(directory);
  }
}
