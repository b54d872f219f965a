import type { Logger } from 'pino';
import { type Config, ConfigError, readConfig } from '../config.ts';
import { restoreBackup, writeBackup } from '../db/backups.ts';
import { openDataDirectory } from '../db/embedded.ts';
import { UserError } from '../domain/user-error.ts';
import { createLog } from '../observability/log.ts';
import { loadPlugins } from '../providers/plugins.ts';
import { createService } from '../service.ts';
import { askHealth } from './ask-health.ts';
import { checkAccount } from './check-account.ts';
import { type CommandLine, HELP, parseCommandLine, type Terminal } from './command-line.ts';
import { createKey } from './create-key.ts';
import { createOwnerLink } from './create-owner-link.ts';
import { runDoctor } from './doctor.ts';
import { openStore } from './open-store.ts';
import { rotateKeys } from './rotate-keys.ts';
import { type RunningService, start } from './start.ts';
import { variablesTable } from './variables-table.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Runs one command.
 * @param args without node and the script
 * @returns exit code 0, 1 (the system refused) or 2 (a setting or an argument is wrong), or the service that was started
 */
export async function runCli(
  args: readonly string[],
  environment: Environment,
  terminal: Terminal,
): Promise<number | RunningService> {
  try {
    const line = parseCommandLine(args, Date.now());
    if (line.command === 'help') {
      terminal.out(HELP);
      return 0;
    }
    const config = readConfig(environment);
    return await runCommand(line, config, environment, terminal);
  } catch (error) {
    return explain(error, terminal);
  }
}

async function runCommand(
  { command, flags, subject, to, waitSeconds }: CommandLine,
  config: Config,
  environment: Environment,
  terminal: Terminal,
): Promise<number | RunningService> {
  const log = createLog(config.LOG_LEVEL);
  if (command === 'start') return start(config, terminal, log);
  if (command === 'rotate-keys') return rotateKeys(config, terminal, log);
  // Its findings say what a log would.
  if (command === 'doctor') return runDoctor(config, terminal, createLog('silent'));
  if (command === 'health') return askHealth(config, waitSeconds * 1_000, terminal);
  if (command === 'config') terminal.out(variablesTable(environment));
  if (command === 'migrate') await runMigrations(config, terminal, log);
  if (command === 'create-key') await createKey(config, flags, terminal, log);
  if (command === 'create-owner-link') await createOwnerLink(config, terminal, log);
  if (command === 'backup') await backUp(config, terminal, log);
  if (command === 'restore' && subject !== undefined) await restore(config, subject, terminal);
  if (command === 'check-account' && subject !== undefined) return check(config, subject, to, terminal, log);
  return 0;
}

async function runMigrations(config: Config, terminal: Terminal, log: Logger): Promise<void> {
  const { migrated, close } = await openStore(config, log, true);
  await close();
  terminal.out(migrated.length === 0 ? 'The schema is up to date.\n' : migrated.map((name) => `${name}\n`).join(''));
}

async function check(
  config: Config,
  account: string,
  to: string | undefined,
  terminal: Terminal,
  log: Logger,
): Promise<number> {
  const providers = await loadPlugins(config.PROVIDERS);
  const { db, masterKeys, close } = await openStore(config, log);
  try {
    const service = await createService({ config, db, masterKeys, log, providers });
    try {
      return await checkAccount(service.rooms, account, to, terminal);
    } finally {
      await service.close();
    }
  } finally {
    await close();
  }
}

async function backUp(config: Config, terminal: Terminal, log: Logger): Promise<void> {
  refuseServer(config, 'backup', 'pg_dump');
  const { embedded, close } = await openStore(config, log);
  try {
    if (embedded === undefined) return;
    terminal.out(`${await writeBackup(embedded.directory, embedded.database, Date.now())}\n`);
  } finally {
    await close();
  }
}

async function restore(config: Config, file: string, terminal: Terminal): Promise<void> {
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

/** Prints what the operator can act on. Anything else is a fault of the program, so its stack helps. */
function explain(error: unknown, terminal: Terminal): number {
  if (error instanceof ConfigError) {
    for (const fault of error.faults) terminal.error(`${fault}\n`);
    return 2;
  }
  if (error instanceof UserError) {
    terminal.error(`${error.message}\n`);
    return error.exitCode;
  }
  terminal.error(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
  return 1;
}
