import { type Config, ConfigError, readConfig } from '../config.ts';
import { UserError } from '../domain/user-error.ts';
import { createLog } from '../observability/log.ts';
import { askHealth } from './ask-health.ts';
import { type CommandLine, HELP, parseCommandLine, type Terminal } from './command-line.ts';
import type { RunningService } from './start.ts';
import { variablesTable } from './variables-table.ts';

// A command loads only the modules that it needs: all of the service takes a second, and most commands need only the
// database.
const storeCommands = () => import('./store-commands.ts');
const serviceCommands = () => import('./service-commands.ts');

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Runs one command.
 * @param args without node and the script
 * @returns exit code 0, 1 (the system refused) or 2 (a setting or an argument is wrong), or the service that was
 * started
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
  if (command === 'config') {
    terminal.out(variablesTable(environment));
    return 0;
  }
  const log = createLog(config.LOG_LEVEL);
  if (command === 'start') return (await serviceCommands()).start(config, terminal, log);
  // Its findings replace a log.
  if (command === 'doctor') return (await serviceCommands()).runDoctor(config, terminal, createLog('silent'));
  if (command === 'health') return askHealth(config, waitSeconds * 1_000, terminal);
  if (command === 'check-account' && subject !== undefined)
    return (await serviceCommands()).check(config, subject, to, terminal, log);
  const { rotateKeys, runMigrations, createKey, createOwnerLink, resetSecondFactor, backUp, restore } =
    await storeCommands();
  if (command === 'rotate-keys') return rotateKeys(config, terminal, log);
  if (command === 'migrate') await runMigrations(config, terminal, log);
  if (command === 'create-key') await createKey(config, flags, terminal, log);
  if (command === 'create-owner-link') await createOwnerLink(config, terminal, log);
  if (command === 'reset-second-factor' && subject !== undefined)
    await resetSecondFactor(config, subject, terminal, log);
  if (command === 'backup') await backUp(config, terminal, log);
  if (command === 'restore' && subject !== undefined) await restore(config, subject, terminal);
  return 0;
}

/** Prints errors that the operator can act on. Anything else is a fault of the program, so its stack helps. */
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
