import { randomBytes } from 'node:crypto';
import { closeSync, existsSync, fsyncSync, openSync, readFileSync, renameSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { UserError } from '../domain/user-error.ts';
import type { MasterKey } from '../security/envelope.ts';

const FILE = 'master.key';
const KEY_BYTES = 32;
/** The form of SECRET_KEYS, so that the line can be moved there. */
const FORM = /^([A-Za-z0-9]{1,16}):([A-Za-z0-9+/]{43}=)$/;

/**
 * The master key of an embedded database, from `master.key` in the data directory.
 * @param mayCreate whether a missing key is made: only if the database is new, since nothing else opens its secrets
 * @throws UserError if the file is missing or not readable as a key
 */
export function masterKeyIn(directory: string, mayCreate: boolean): MasterKey {
  const path = join(directory, FILE);
  if (!existsSync(path)) {
    if (!mayCreate)
      throw new UserError(
        `${path} is missing, and the database has secrets under that key. Put back your copy of the file, or set SECRET_KEYS to its line.`,
        2,
      );
    create(path);
  }
  const [, id, encoded] = FORM.exec(read(path).trim()) ?? [];
  if (id === undefined || encoded === undefined)
    throw new UserError(`${path} is not a master key: expected one line <id>:<base64 of 32 bytes>.`, 2);
  return { id, key: Buffer.from(encoded, 'base64') };
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (cause) {
    throw new UserError(`${path}: cannot be read (${(cause as NodeJS.ErrnoException).code}).`, 2, { cause });
  }
}

/** The file is complete or absent, even if the machine stops meanwhile: half a key would lose the database's secrets. */
function create(path: string): void {
  const draft = `${path}.new`;
  rmSync(draft, { force: true });
  const file = openSync(draft, 'wx', 0o600);
  try {
    writeSync(file, `k1:${randomBytes(KEY_BYTES).toString('base64')}\n`);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(draft, path);
}
