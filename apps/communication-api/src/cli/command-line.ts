import { parseArgs } from 'node:util';
import { UserError } from '../domain/user-error.ts';

/** The output of a command. */
export interface Terminal {
  out(text: string): void;
  error(text: string): void;
}

const COMMANDS = [
  'start',
  'migrate',
  'create-key',
  'create-owner-link',
  'reset-second-factor',
  'rotate-keys',
  'check-account',
  'backup',
  'restore',
  'doctor',
  'health',
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
  /** The file of `restore`, the account of `check-account`, or the login of `reset-second-factor`. */
  readonly subject: string | undefined;
  /** Where `check-account` sends to. */
  readonly to: string | undefined;
  /** For how long `health` asks. */
  readonly waitSeconds: number;
}

const OPTIONS = {
  application: { type: 'string' },
  environment: { type: 'string' },
  name: { type: 'string' },
  expires: { type: 'string' },
  to: { type: 'string' },
  wait: { type: 'string' },
  help: { type: 'boolean', short: 'h' },
} as const;

export const HELP = `communication-api [command]

  start                start the service (the default)
  migrate              bring the schema of the database up to date
  create-key           create a service key, and the application if it is new; prints the token once
    --application NAME   default: the oldest application; a name that does not exist is created
    --environment ENV    development or production, for an application that is created (default: development)
    --name NAME          the name of the key (default: bootstrap)
    --expires TIME       ISO 8601 (default: in a year)
  create-owner-link    print a link, for one hour, by which a person becomes an Owner of the dashboard
  reset-second-factor EMAIL  let a person whose device is lost sign in to the dashboard with the password only
  rotate-keys          put every secret of the database under the current master key
  check-account ID     send a few emails with a real account, and report whether its provider works as needed
    --to ADDRESS         default: the account's own address
  backup               write a backup of the embedded database into DATA_DIR/backups
  restore FILE         replace the embedded database by a backup
  doctor               check the database, the keys, the clock, Redis, the processes, domains and providers
  health               say whether the process at ADMIN_PORT is ready: exit code 0 or 1
    --wait SECONDS       ask until it is, for so long (default: 0, once)
  config               print every variable of the environment with its value
  help                 print this

Settings are variables of the environment: see "config".
`;

/** The argument that a command requires. */
const SUBJECTS: Partial<Record<CommandName, { readonly what: string; readonly name: string }>> = {
  restore: { what: 'a file', name: 'FILE' },
  'check-account': { what: 'an account', name: 'ID' },
  'reset-second-factor': { what: 'an email address', name: 'EMAIL' },
};

/** The only command that accepts a flag. */
const ownerOf = (flag: string): CommandName => OWNERS[flag] ?? 'create-key';
const OWNERS: Readonly<Record<string, CommandName>> = { to: 'check-account', wait: 'health' };

/** @throws UserError with exit code 2 */
export function parseCommandLine(args: readonly string[], nowMs: number): CommandLine {
  const { values, positionals } = parse(args);
  const [given = 'start', ...rest] = positionals;
  const command = values.help === true ? 'help' : COMMANDS.find((name) => name === given);
  if (command === undefined) throw usage(`unknown command ${JSON.stringify(given)} (use ${COMMANDS.join(', ')})`);
  const subjectName = SUBJECTS[command];
  const [subject, extra] = subjectName === undefined ? [undefined, rest[0]] : rest;
  if (subjectName !== undefined && subject === undefined)
    throw usage(`${command}: ${subjectName.what} is missing (use ${command} ${subjectName.name})`);
  if (extra !== undefined) throw usage(`${command}: unexpected ${JSON.stringify(extra)}`);
  const { help: _, ...flagsGiven } = values;
  const flag = Object.keys(flagsGiven).find((name) => ownerOf(name) !== command);
  if (flag !== undefined && command !== 'help')
    throw usage(`${command}: unexpected --${flag} (only ${ownerOf(flag)} has it)`);
  const { to, wait, ...flags } = flagsGiven;
  return { command, flags: keyFlags(flags, nowMs), subject, to, waitSeconds: secondsOf(wait) };
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

function secondsOf(text = '0'): number {
  const seconds = /^\d{1,4}$/.test(text) ? Number(text) : undefined;
  if (seconds === undefined) throw usage(`--wait: ${JSON.stringify(text)} (use whole seconds, at most 9999)`);
  return seconds;
}

function timeOf(text: string, nowMs: number): Date {
  const time = /^\d{4}-\d\d-\d\d(?:T.*)?$/.test(text) ? new Date(text) : new Date(Number.NaN);
  if (Number.isNaN(time.getTime()))
    throw usage(`--expires: ${JSON.stringify(text)} (use a time such as 2030-01-31T00:00:00Z)`);
  if (time.getTime() <= nowMs) throw usage(`--expires: ${JSON.stringify(text)} is in the past`);
  return time;
}

const usage = (message: string): UserError => new UserError(`${message}\n"help" lists the commands.`, 2);
