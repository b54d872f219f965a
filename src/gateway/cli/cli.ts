import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { type Overrides, parseConfig } from '../config/config.ts';
import { ConfigError } from '../config/config-error.ts';
import type { Config } from '../config/schema.ts';
import { notesOn } from '../config/warnings.ts';
import { examine, findingsTable } from '../operations/doctor.ts';
import { ListenError } from '../server/listen.ts';
import { limitsTable } from './limits-table.ts';
import { serve } from './serve.ts';
import { USAGE } from './usage.ts';
import { version } from './version.ts';

/** Where the command line prints. */
export interface Terminal {
  out(text: string): void;
  error(text: string): void;
}

/** A fault of the command line itself; exit code 2. */
class UsageError extends Error {}

const OPTIONS = {
  config: { type: 'string' },
  host: { type: 'string' },
  port: { type: 'string' },
  upstream: { type: 'string' },
  store: { type: 'string' },
  help: { type: 'boolean', short: 'h' },
  version: { type: 'boolean', short: 'v' },
} as const;

/**
 * Runs one command.
 * @param args without node and the script
 * @returns exit code, or undefined where the process goes on serving: 0 done, 1 the system refused, 2 config or command line at fault
 */
export async function runCli(args: readonly string[], terminal: Terminal): Promise<number | undefined> {
  try {
    const { values, positionals } = parse(args);
    if (values.help) return print(terminal, USAGE);
    if (values.version) return print(terminal, `${version}\n`);
    const command = commandOf(positionals);
    const overrides: Overrides = values;
    const config = values.config === undefined ? undefined : readConfig(values.config, overrides);
    if (command === 'check') {
      if (config === undefined) throw new UsageError('check needs --config FILE');
      for (const { path, reason } of notesOn(config)) terminal.error(`note: ${path}: ${reason}\n`);
      return print(terminal, limitsTable(config));
    }
    if (command === 'doctor') {
      if (config === undefined) throw new UsageError('doctor needs --config FILE');
      const findings = await examine(config);
      print(terminal, findingsTable(findings));
      return findings.some(({ verdict }) => verdict === 'fault') ? 1 : 0;
    }
    await serve(config, overrides);
    return undefined;
  } catch (error) {
    return explain(error, terminal);
  }
}

function parse(args: readonly string[]) {
  let parsed: ReturnType<typeof parseAll>;
  try {
    parsed = parseAll(args);
  } catch (error) {
    // Node's first sentence says it; what follows is advice for other cases.
    throw new UsageError((error as Error).message.split(/\.\s/)[0]);
  }
  const names = parsed.tokens.flatMap((token) => (token.kind === 'option' ? [token.name] : []));
  const twice = names.find((name, i) => names.indexOf(name) < i);
  if (twice !== undefined) throw new UsageError(`--${twice} is given more than once`);
  return parsed;
}

function parseAll(args: readonly string[]) {
  return parseArgs({ args: [...args], options: OPTIONS, allowPositionals: true, strict: true, tokens: true });
}

const COMMANDS = ['serve', 'check', 'doctor'] as const;
type Command = (typeof COMMANDS)[number];

function commandOf(positionals: readonly string[]): Command {
  const [command, extra] = positionals;
  if (command === undefined) throw new UsageError('a command is missing: serve, check or doctor');
  if (!isCommand(command)) throw new UsageError(`${JSON.stringify(command)} is no command: serve, check or doctor`);
  if (extra !== undefined) throw new UsageError(`${JSON.stringify(extra)} is too much: ${command} takes options only`);
  return command;
}

function isCommand(text: string): text is Command {
  return (COMMANDS as readonly string[]).includes(text);
}

function readConfig(file: string, overrides: Overrides): Config {
  return parseConfig(read(file), file, overrides);
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const why = code === 'ENOENT' ? 'there is no such file' : `it cannot be read (${code})`;
    throw new UsageError(`--config ${file}: ${why}`);
  }
}

function print(terminal: Terminal, text: string): number {
  terminal.out(text);
  return 0;
}

function explain(error: unknown, terminal: Terminal): number {
  if (error instanceof UsageError) {
    terminal.error(`headgate: ${error.message} (headgate --help says more)\n`);
    return 2;
  }
  if (error instanceof ConfigError) {
    terminal.error(`headgate: ${error.message}\n`);
    return 2;
  }
  if (error instanceof ListenError) {
    terminal.error(`headgate: ${error.message}\n`);
    return 1;
  }
  terminal.error(`headgate: ${error instanceof Error ? error.stack : String(error)}\n`);
  return 1;
}
