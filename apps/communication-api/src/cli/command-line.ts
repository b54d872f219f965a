import { parseArgs } from 'node:util';
import { UserError } from '../domain/user-error.ts';

/** Where a command prints. */
export interface Terminal {
  out(text: string): void;
  error(text: string): void;
}

const COMMANDS = [
  'start',
  'migrate',
  'create-key',
  'rotate-keys',
  'backup',
  'restore',
  'doctor',
  'config',
  'help',
] as const;
export type CommandName = (typeof COMMANDS)[number];

/** The flags of `create-key`. */
export interface KeyFlags {
  readonly application?: string | undefined;
  readonly environment?: 'development' | 'production' | undefined;
  readonly name?: string | undefined;
  readonly expires?: Date | undefined;
}

export interface CommandLine {
  readonly command: CommandName;
  readonly flags: KeyFlags;
  /** The file of `restore`. */
  readonly file: string | undefined;
}

const OPTIONS = {
  application: { type: 'string' },
  environment: { type: 'string' },
  name: { type: 'string' },
  expires: { type: 'string' },
  help: { type: 'boolean', short: 'h' },
} as const;

export const HELP = `communication-api [command]

  start                start the service (the default)
  migrate              bring the schema of the database up to date
  create-key           create a service key, and the application if there is none; prints the token once
    --application NAME   default: the oldest application; a name that does not exist is created
    --environment ENV    development or production, for an application that is created (default: development)
    --name NAME          what the key is called (default: bootstrap)
    --expires TIME       ISO 8601 (default: in a year)
  rotate-keys          put every secret of the database under the current master key
  backup               write a backup of the embedded database into DATA_DIR/backups
  restore FILE         replace the embedded database by a backup
  doctor               check the database, the master keys, Redis and the providers
  config               print every variable of the environment with its value
  help                 print this

Settings are variables of the environment: see "config".
`;

/** @throws UserError with exit code 2 */
export function parseCommandLine(args: readonly string[], nowMs: number): CommandLine {
  const { values, positionals } = parse(args);
  const [given = 'start', ...rest] = positionals;
  const command = values.help === true ? 'help' : COMMANDS.find((name) => name === given);
  if (command === undefined) throw usage(`unknown command ${JSON.stringify(given)} (use ${COMMANDS.join(', ')})`);
  const [file, extra] = command === 'restore' ? rest : [undefined, rest[0]];
  if (command === 'restore' && file === undefined) throw usage('restore: a file is missing (use restore FILE)');
  if (extra !== undefined) throw usage(`${command}: unexpected ${JSON.stringify(extra)}`);
  const { help: _, ...flags } = values;
  const [flag] = Object.keys(flags);
  if (flag !== undefined && command !== 'create-key' && command !== 'help')
    throw usage(`${command}: unexpected --${flag} (only create-key has it)`);
  return { command, flags: keyFlags(flags, nowMs), file };
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: OPTIONS, allowPositionals: true });
  } catch (error) {
    // The first sentence of Node's message is about this mistake; the rest is general advice.
    throw usage((error as Error).message.split(/\.\s/)[0] ?? '');
  }
}

function keyFlags(
  { application, environment, name, expires }: Readonly<Record<string, string | undefined>>,
  nowMs: number,
): KeyFlags {
  if (environment !== undefined && environment !== 'development' && environment !== 'production')
    throw usage(`--environment: ${JSON.stringify(environment)} (use development or production)`);
  for (const [flag, text] of Object.entries({ application, name }))
    if (text?.trim() === '') throw usage(`--${flag}: must not be empty`);
  return { application, environment, name, expires: expires === undefined ? undefined : timeOf(expires, nowMs) };
}

function timeOf(text: string, nowMs: number): Date {
  const time = /^\d{4}-\d\d-\d\d(?:T.*)?$/.test(text) ? new Date(text) : new Date(Number.NaN);
  if (Number.isNaN(time.getTime()))
    throw usage(`--expires: ${JSON.stringify(text)} (use a time such as 2030-01-31T00:00:00Z)`);
  if (time.getTime() <= nowMs) throw usage(`--expires: ${JSON.stringify(text)} is in the past`);
  return time;
}

const usage = (message: string): UserError => new UserError(`${message}\n"help" lists the commands.`, 2);
