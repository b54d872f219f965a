import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { isHeadgateError, parseDuration } from 'headgate';
import { type FieldMap, type Policy, readTrace, shownJson, type Trace, type TraceFormat } from 'headgate-simulate';
import { checkConfig } from '../config/config.ts';
import { ConfigError } from '../config/config-error.ts';
import { accountsIn } from '../config/consumers.ts';
import { groupsOf } from '../config/groups.ts';
import { arrayOrEmpty, isObject, objectOrEmpty, readJson } from '../config/json.ts';
import { limitsOf } from '../config/limits.ts';
import { type Config, configSchema } from '../config/schema.ts';
import { digestOfToken } from '../config/token-digest.ts';
import { readConfigFile } from './config-file.ts';
import type { Terminal } from './terminal.ts';
import { UsageError } from './usage.ts';

/** Flags of both commands that read a log. */
export const TRACE_OPTIONS = {
  config: { type: 'string' },
  trace: { type: 'string' },
  format: { type: 'string' },
  account: { type: 'string' },
  map: { type: 'string' },
  sort: { type: 'string' },
  json: { type: 'boolean' },
} as const;

/** Values of {@link TRACE_OPTIONS}. */
export interface TraceValues {
  readonly config?: string | undefined;
  readonly trace?: string | undefined;
  readonly format?: string | undefined;
  readonly account?: string | undefined;
  readonly map?: string | undefined;
  readonly sort?: string | undefined;
  readonly json?: boolean | undefined;
}

/** The log cannot be read, or the report cannot be written: exit code 1. */
export class FileError extends Error {}

/** The sections that limits depend on. The rest of a config, secrets included, is not read. */
const OF_LIMITS = [
  '$schema',
  'upstream',
  'upstreams',
  'providers',
  'clientAddress',
  'accounts',
  'routes',
  'strictSiblings',
  'limits',
];
/** A shorter log is read before its progress could be read. In bytes. */
const LONG_LOG = 20_000_000;
const PROGRESS_MS = 500;
const PIECE_BYTES = 262_144;

/**
 * Reads flags.
 * @throws UsageError
 */
export function readFlags<Options extends NonNullable<NonNullable<Parameters<typeof parseArgs>[0]>['options']>>(
  command: string,
  args: readonly string[],
  options: Options,
) {
  try {
    return parseArgs({ args: [...args], options, strict: true }).values;
  } catch (error) {
    throw new UsageError(`${command}: ${(error as Error).message.split(/\.\s/)[0]}`);
  }
}

/** @throws UsageError, ConfigError */
export async function readLimits(name: string): Promise<Config> {
  const { text } = await readConfigFile(name);
  const json = readJson(text);
  if ('issue' in json) throw new ConfigError(name, [json.issue]);
  const { value } = json;
  if (!isObject(value)) return checkConfig(value, name);
  const known = Object.keys(configSchema.shape);
  const kept = Object.entries(value).filter(([key]) => OF_LIMITS.includes(key) || !known.includes(key));
  const keys = arrayOrEmpty(objectOrEmpty(value).keys).map(withoutSecret);
  return checkConfig({ ...Object.fromEntries(kept), keys }, name);
}

/** What limits depend on: a key's name, application, plan, lane and groups. The secret may be on another machine. */
function withoutSecret(value: unknown, index: number): object {
  const { name, application, plan, lane, groups, sha256 } = objectOrEmpty(value);
  return {
    name,
    application,
    plan,
    lane,
    groups,
    sha256: typeof sha256 === 'string' ? sha256 : digestOfToken(String(index)),
  };
}

/** The limits of a config, the provider, plan and groups of each of its accounts, and lane and groups of each route. */
export function policyOf(config: Config): Policy {
  const accounts = new Map(accountsIn(config).map(({ id, provider, plan }) => [id, { provider, plan }]));
  const lanes = new Map(config.routes.map(({ route, lane }) => [route, lane]));
  const routes = new Map(config.routes.map((route) => [route.route, route]));
  const members = new Map(accountsIn(config).map((account) => [account.id, account]));
  return {
    limits: limitsOf(config),
    account: (id) => accounts.get(id),
    lane: (route) => lanes.get(route),
    // Only the log knows the key of a request.
    groups: (id, route) => groupsOf(routes.get(route), undefined, members.get(id)),
  };
}

/**
 * Opens the log.
 * @throws UsageError, OptionError, FileError; reading throws FileError
 */
export async function openTrace(command: string, values: TraceValues, { routes }: Config): Promise<OpenTrace> {
  const { trace: file, format, account, sort = '10s' } = values;
  if (file === undefined) throw new UsageError(`${command} needs --trace FILE, or --trace - for standard input`);
  const size = file === '-' ? undefined : await sizeOf(file);
  const trace = readTrace(bytesOf(file), {
    format: format as TraceFormat | undefined,
    routes: routes.map(({ route, account: place }) => ({ route, account: place })),
    account,
    map: values.map === undefined ? undefined : fieldMap(values.map),
    sortMs: parseDuration(sort, '--sort'),
  });
  return { trace, size };
}

/** A log, and its bytes if they are known. */
export interface OpenTrace {
  readonly trace: Trace;
  readonly size: number | undefined;
}

/** Shows from time to time how much of a long log was read, if the output is a terminal. */
export function progress(
  terminal: Terminal,
  size: number | undefined,
): {
  readonly onProgress: (figures: Trace['figures']) => void;
  readonly end: () => void;
} {
  const isShown = terminal.isInteractive === true && (size ?? LONG_LOG) >= LONG_LOG;
  let last = performance.now();
  let isBegun = false;
  return {
    onProgress(figures) {
      const now = performance.now();
      if (!isShown || now - last < PROGRESS_MS) return;
      last = now;
      isBegun = true;
      const part = size === undefined ? '' : `${Math.floor((figures.size / size) * 100)} %, `;
      terminal.error(`\r\u001b[Kheadgate: ${part}${figures.lines.toLocaleString('en')} lines`);
    },
    end() {
      if (isBegun) terminal.error('\r\u001b[K');
    },
  };
}

/** A report as JSON, without characters that a terminal would obey. */
export function jsonText(report: object): string {
  return `${shownJson(report)}\n`;
}

/** A part such as `0.1%` or `0.001`. */
export function shareOf(flag: string, text: string): number {
  const match = /^(\d{1,3}(?:\.\d{1,9})?)(%?)$/.exec(text);
  const part = match === null ? Number.NaN : Number(match[1]) / (match[2] === '%' ? 100 : 1);
  if (!(part >= 0 && part <= 1)) throw new UsageError(`--${flag} must be a part such as 0.1% or 0.001`);
  return part;
}

async function sizeOf(file: string): Promise<number> {
  const stats = await stat(file).catch((error: NodeJS.ErrnoException) => {
    throw new FileError(
      `--trace ${file}: ${error.code === 'ENOENT' ? 'the file does not exist' : `the file cannot be read (${error.code})`}`,
    );
  });
  if (stats.isDirectory()) throw new FileError(`--trace ${file}: it is a folder`);
  return stats.size;
}

/** Opened when it is read: an error of a flag comes first. */
async function* bytesOf(file: string): AsyncGenerator<Uint8Array> {
  try {
    yield* file === '-' ? process.stdin : createReadStream(file, { highWaterMark: PIECE_BYTES });
  } catch (error) {
    if (isHeadgateError(error)) throw error;
    throw new FileError(`--trace ${file}: ${(error as Error).message}`);
  }
}

function fieldMap(text: string): FieldMap {
  const pairs = text.split(',').map((pair) => {
    const equals = pair.indexOf('=');
    if (equals < 1 || equals === pair.length - 1)
      throw new UsageError('--map must have fields such as at=ts,method=m,path=p');
    return [pair.slice(0, equals), pair.slice(equals + 1)] as const;
  });
  return Object.fromEntries(pairs);
}
