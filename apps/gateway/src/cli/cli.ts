import { parseArgs } from 'node:util';
import { isHeadgateError } from 'headgate';
import { parseConfig } from '../config/config.ts';
import { ConfigError } from '../config/config-error.ts';
import type { Config } from '../config/schema.ts';
import { alternatives, nearestName } from '../config/suggest.ts';
import { warningsFor } from '../config/warnings.ts';
import { version } from '../operations/version.ts';
import { ListenError } from '../server/listen.ts';
import { examineStore } from '../store/doctor.ts';
import { findingsTable } from '../store/finding.ts';
import { StoreSetupError } from '../store/postgres-schemas.ts';
import { readConfigFile } from './config-file.ts';
import { askHealth, type HealthTarget, targetAt, targetIn } from './health.ts';
import { runLimits } from './limits.ts';
import { limitsTable } from './limits-table.ts';
import { migrateStore } from './migrate.ts';
import { runRecommend } from './recommend.ts';
import { routesTable } from './routes-table.ts';
import { serve } from './serve.ts';
import { runSimulate } from './simulate.ts';
import type { Terminal } from './terminal.ts';
import { FileError } from './trace-flags.ts';
import { USAGE, UsageError } from './usage.ts';

const OPTIONS = {
  config: { type: 'string' },
  host: { type: 'string' },
  port: { type: 'string' },
  'admin-port': { type: 'string' },
  upstream: { type: 'string' },
  store: { type: 'string' },
  watch: { type: 'boolean' },
  print: { type: 'boolean' },
  url: { type: 'string' },
  timeout: { type: 'string' },
  help: { type: 'boolean', short: 'h' },
  version: { type: 'boolean', short: 'v' },
} as const;

/** Commands that parse their flags and arguments themselves. */
const WITH_OWN_FLAGS: ReadonlyMap<string, (args: readonly string[], terminal: Terminal) => Promise<number>> = new Map([
  ['limits', (args, terminal) => runLimits(args, terminal)],
  ['simulate', runSimulate],
  ['recommend', runRecommend],
]);

const COMMANDS = ['serve', 'check', 'doctor', 'migrate', 'health'] as const;
type Command = (typeof COMMANDS)[number];

/** Flags that only one command has. */
const OF_ONE_COMMAND = [
  ['watch', 'serve'],
  ['print', 'migrate'],
  ['url', 'health'],
  ['timeout', 'health'],
] as const satisfies readonly (readonly [keyof typeof OPTIONS, Command])[];

/**
 * Runs one command.
 * @param args without node and the script
 * @returns exit code, or undefined if the process keeps serving. 0: done, 1: the system refused, 2: error in the config
 * or the command line
 */
export async function runCli(args: readonly string[], terminal: Terminal): Promise<number | undefined> {
  try {
    const own = ownCommand(args);
    if (own !== undefined) return await own(args.slice(1), terminal);
    const { values, positionals } = parse(WITH_OWN_FLAGS.has(args[0] ?? '') ? ['--help'] : args);
    if (values.help) return print(terminal, USAGE);
    if (values.version) return print(terminal, `${version}\n`);
    const command = commandOf(positionals);
    const misplaced = OF_ONE_COMMAND.find(([flag, owner]) => values[flag] !== undefined && command !== owner);
    if (misplaced !== undefined)
      throw new UsageError(`--${misplaced[0]} is only for ${misplaced[1]}, not for ${command}`);
    if (command === 'health') return await health(values, terminal);
    const file = values.config === undefined ? undefined : await readConfigFile(values.config);
    const config = file === undefined ? undefined : parseConfig(file.text, file.name, values);
    if (values.watch && file === undefined) throw new UsageError('--watch needs --config FILE');
    if (command === 'serve') {
      await serve(config, values, file && { name: file.name, hash: file.hash, watch: values.watch === true });
      return undefined;
    }
    if (config === undefined) throw new UsageError(`${command} needs --config FILE`);
    if (command === 'migrate') return await migrateStore(config, values.print === true, terminal);
    return command === 'check' ? check(config, terminal) : await doctor(config, terminal);
  } catch (error) {
    return explain(error, terminal);
  }
}

/** The command, if it parses its flags itself and is not asked for help. */
function ownCommand(args: readonly string[]) {
  return args.includes('--help') || args.includes('-h') ? undefined : WITH_OWN_FLAGS.get(args[0] ?? '');
}

function check(config: Config, terminal: Terminal): number {
  for (const { path, reason } of warningsFor(config)) terminal.error(`warning: ${path}: ${reason}\n`);
  return print(terminal, `${routesTable(config)}\n${limitsTable(config)}`);
}

async function doctor(config: Config, terminal: Terminal): Promise<number> {
  const findings = await examineStore(config);
  print(terminal, findingsTable(findings));
  return findings.some(({ verdict }) => verdict === 'fault') ? 1 : 0;
}

async function health(values: Values, terminal: Terminal): Promise<number> {
  const { timeout = '2000' } = values;
  if (!/^[1-9]\d{0,5}$/.test(timeout))
    throw new UsageError('--timeout must be a number of milliseconds, at most 999999');
  const { isReady, text } = await askHealth(await healthTarget(values), Number(timeout));
  if (isReady) return print(terminal, `${text}\n`);
  terminal.error(`headgate: not ready: ${text}\n`);
  return 1;
}

async function healthTarget(values: Values): Promise<HealthTarget> {
  const { config, url } = values;
  if (url === undefined) {
    const target = targetIn(config === undefined ? '{}' : (await readConfigFile(config)).text, values);
    if (typeof target === 'string')
      throw new UsageError(`${config === undefined ? 'health' : `--config ${config}`}: ${target}`);
    return target;
  }
  if (config !== undefined) throw new UsageError('health takes --config or --url, not both');
  const target = targetAt(url);
  if (target === undefined) throw new UsageError('--url must be a URL with http:// or https://');
  return target;
}

type Values = ReturnType<typeof parse>['values'];

function parse(args: readonly string[]) {
  // Not strict, so that the message about an unknown flag is ours.
  const { tokens } = parseArgs({ args: [...args], options: OPTIONS, strict: false, tokens: true });
  const flags = tokens.filter((token) => token.kind === 'option');
  const unknown = flags.find(({ name }) => !Object.hasOwn(OPTIONS, name));
  if (unknown !== undefined) throw new UsageError(unknownFlag(unknown.rawName, unknown.name));
  const twice = flags.find(({ name }, i) => flags.findIndex((flag) => flag.name === name) < i);
  if (twice !== undefined) throw new UsageError(`--${twice.name} is given more than once`);
  try {
    return parseArgs({ args: [...args], options: OPTIONS, allowPositionals: true });
  } catch (error) {
    // The first sentence of Node's message is about this mistake; the rest is general advice.
    throw new UsageError((error as Error).message.split(/\.\s/)[0]);
  }
}

function unknownFlag(given: string, name: string): string {
  const known = Object.keys(OPTIONS);
  const nearest = nearestName(name, known);
  const flags = alternatives(known.map((flag) => `--${flag}`));
  return `unknown flag ${given}${nearest === undefined ? ` (use ${flags})` : `, did you mean --${nearest}?`}`;
}

function commandOf(positionals: readonly string[]): Command {
  const [command, extra] = positionals;
  const use = `use ${alternatives([...COMMANDS, ...WITH_OWN_FLAGS.keys()])}`;
  if (command === undefined) throw new UsageError(`a command is missing (${use})`);
  if (!isCommand(command)) throw new UsageError(`unknown command ${JSON.stringify(command)} (${use})`);
  if (extra !== undefined) throw new UsageError(`unexpected ${JSON.stringify(extra)}: ${command} takes only flags`);
  return command;
}

function isCommand(text: string): text is Command {
  return (COMMANDS as readonly string[]).includes(text);
}

function print(terminal: Terminal, text: string): number {
  terminal.out(text);
  return 0;
}

/** Prints an error; returns the exit code. */
function explain(error: unknown, terminal: Terminal): number {
  if (error instanceof UsageError) {
    terminal.error(`headgate: ${error.message} (see headgate --help)\n`);
    return 2;
  }
  if (isHeadgateError(error) || error instanceof FileError || error instanceof StoreSetupError) {
    terminal.error(`headgate: ${error.message}\n`);
    return isHeadgateError(error, 'invalid_option') || isHeadgateError(error, 'invalid_limit') ? 2 : 1;
  }
  if (error instanceof ConfigError || error instanceof ListenError) {
    terminal.error(`headgate: ${error.message}\n`);
    return error instanceof ConfigError ? 2 : 1;
  }
  terminal.error(`headgate: ${error instanceof Error ? error.stack : String(error)}\n`);
  return 1;
}
