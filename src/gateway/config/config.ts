import type { z } from 'zod';
import { ConfigError, type Fault, formatPath } from './config-error.ts';
import { crossChecks } from './cross-checks.ts';
import { readJson } from './json.ts';
import { isObject, record } from './raw.ts';
import { type Config, configSchema } from './schema.ts';

/** What flags say; each wins over the file. */
export interface Overrides {
  readonly host?: string | undefined;
  readonly port?: string | undefined;
  readonly upstream?: string | undefined;
  readonly store?: string | undefined;
}

/** Where a flag's value stands in the config. */
const FLAG_OF: ReadonlyMap<string, keyof Overrides> = new Map([
  ['listen.host', 'host'],
  ['listen.port', 'port'],
  ['upstream', 'upstream'],
  ['store', 'store'],
]);

/**
 * Reads a config file.
 * @param source its name, for messages
 * @throws ConfigError with every fault
 */
export function parseConfig(text: string, source: string, overrides: Overrides = {}): Config {
  const json = readJson(text);
  if ('fault' in json) throw new ConfigError(source, [json.fault]);
  return checkConfig(json.value, source, overrides);
}

/**
 * Checks a config that is already JSON, and fills in its defaults.
 * @throws ConfigError with every fault
 */
export function checkConfig(input: unknown, source: string, overrides: Overrides = {}): Config {
  const raw = isObject(input) ? overridden(input, overrides) : input;
  // zod drops a property called `__proto__`; an account may well have that name.
  const result = configSchema.safeParse(renamed(raw, PROTO, STAND_IN));
  const config = result.success ? (renamed(result.data, STAND_IN, PROTO) as Config) : undefined;
  const faults = [...(result.error?.issues.flatMap((issue) => faultsOf(issue)) ?? []), ...crossChecks(record(raw))];
  if (config === undefined || faults.length > 0)
    throw new ConfigError(
      source,
      faults.map((f) => ofFlag(f, overrides)),
    );
  return config;
}

function overridden(file: object, { host, port, upstream, store }: Overrides): object {
  const result: Record<string, unknown> = { ...file };
  if (upstream !== undefined) result.upstream = upstream;
  if (store !== undefined) result.store = store;
  const listen = result.listen ?? {};
  if ((host !== undefined || port !== undefined) && isObject(listen)) {
    result.listen = {
      ...listen,
      ...(host === undefined ? {} : { host }),
      ...(port === undefined ? {} : { port: /^\d{1,5}$/.test(port) ? Number(port) : port }),
    };
  }
  return result;
}

/** A fault of a value that came from a flag is the flag's. */
function ofFlag(fault: Fault, overrides: Overrides): Fault {
  const flag = FLAG_OF.get(fault.path);
  const isGiven = flag !== undefined && overrides[flag] !== undefined;
  return isGiven ? { path: `--${flag}`, reason: fault.reason } : fault;
}

/** One fault for each thing that is wrong: unknown keys each by itself, and of a union the alternative that was meant. */
function faultsOf(issue: z.core.$ZodIssue, above: readonly PropertyKey[] = []): Fault[] {
  const path = [...above, ...issue.path];
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({ path: place([...path, key]), reason: 'is no option that headgate knows' }));
  }
  if (issue.code === 'invalid_union') {
    const meant = issue.errors.find((issues) =>
      issues.some((inner) => inner.path.length > 0 || inner.code !== 'invalid_type'),
    );
    if (meant !== undefined) return meant.flatMap((inner) => faultsOf(inner, path));
  }
  return [{ path: place(path), reason: reasonOf(issue) }];
}

/** zod's own messages in this house's words; those of the schema stay. */
function reasonOf(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case 'too_big':
      return `must be at most ${issue.maximum}`;
    case 'too_small':
      return issue.origin === 'string' ? 'must not be empty' : `must be at least ${issue.minimum}`;
    case 'invalid_type':
      return issue.message
        .replace(/^Invalid input: expected (.*), received undefined$/, 'is missing: a $1')
        .replace(/^Invalid input: expected int, .*$/, 'must be a whole number')
        .replace(/^Invalid input: expected (.*), received (.*)$/, 'must be of type $1, is $2');
    case 'invalid_value':
      return `must be one of ${issue.values.map((value) => JSON.stringify(value)).join(', ')}`;
    default:
      return issue.message;
  }
}

function place(path: readonly PropertyKey[]): string {
  return formatPath(path.map((part) => (part === STAND_IN ? PROTO : part)));
}

const PROTO = '__proto__';
const STAND_IN = '\u0000__proto__';

/** A copy in which every property `from` is called `to`. */
function renamed(value: unknown, from: string, to: string): unknown {
  if (Array.isArray(value)) return value.map((element) => renamed(element, from, to));
  if (!isObject(value)) return value;
  // fromEntries defines properties, where an assignment of `__proto__` would set the prototype.
  return Object.fromEntries(
    Object.entries(value).map(([key, element]) => [key === from ? to : key, renamed(element, from, to)]),
  );
}
