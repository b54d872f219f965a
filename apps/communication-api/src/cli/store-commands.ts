import type { Logger } from 'pino';
import type { Config } from '../config.ts';
import { restoreBackup, writeBackup } from '../db/backups.ts';
import { openDataDirectory } from '../db/embedded.ts';
import { UserError } from '../domain/user-error.ts';
import type { Terminal } from './command-line.ts';
import { openStore } from './open-store.ts';

export { createKey } from './create-key.ts';
export { createOwnerLink, resetSecondFactor } from './logins.ts';
export { rotateKeys } from './rotate-keys.ts';

export async function runMigrations(config: Config, terminal: Terminal, log: Logger): Promise<void> {
  const { migrated, close } = await openStore(config, log, { mayMigrate: true });
  await close();
  terminal.out(migrated.length === 0 ? 'The schema is up to date.\n' : migrated.map((name) => `${name}\n`).join(''));
}

export async function backUp(config: Config, terminal: Terminal, log: Logger): Promise<void> {
  refuseServer(config, 'backup', 'pg_dump');
  const { embedded, close } = await openStore(config, log);
  try {
    if (embedded === undefined) return;
    terminal.out(`${await writeBackup(embedded.directory, embedded.database, Date.now())}\n`);
  } finally {
    await close();
  }
}

export async function restore(config: Config, file: string, terminal: Terminal): Promise<void> {
  refuseServer(config, 'restore', 'pg_restore');
  const directory = await openDataDirectory(config.DATA_DIR);
  try {
    const before = await restoreBackup(directory, file, Date.now());
    terminal.out(`The database of ${directory.path} is the one of the backup now.\n`);
    if (before !== undefined)
      terminal.out(`The database of before is in ${before}. Remove it if you do not need it.\n`);
  } finally {
    await directory.close();
  }
}

function refuseServer({ DATABASE_URL }: Config, command: string, tool: string): void {
  if (DATABASE_URL !== undefined)
    throw new UserError(`${command}: this is for the embedded database. For DATABASE_URL, use ${tool}.`, 2);
}
