import { dirname, resolve } from 'node:path';
import type { z } from 'zod';
import { describe } from '../../core/errors.ts';
import { ConfigError, type ConfigIssue, formatPath } from './config-error.ts';
import { crossChecks } from './cross-checks.ts';
import { isObject, type JsonObject, objectOrEmpty, readJson } from './json.ts';
import { unlimitedIssues } from './limits.ts';
import { type Config, configSchema } from './schema.ts';
import { readSecrets, type WithSecrets } from './secrets.ts';
import { alternatives, didYouMean } from './suggest.ts';
import { readTlsFiles } from './tls-files.ts';

/** Values of command-line flags; each wins over the file. */
export interface Overrides {
  readonly host?: string | undefined;
  readonly port?: string | undefined;
  readonly 'admin-port'?: string | undefined;
  readonly upstream?: string | undefined;
  readonly store?: string | undefined;
}

/** The flag that sets each place of the config. */
const FLAGS: ReadonlyMap<string, keyof Overrides> = new Map([
  ['listen.host', 'host'],
  ['listen.port', 'port'],
  ['admin.port', 'admin-port'],
  ['upstream', 'upstream'],
  ['store', 'store'],
]);

/**
 * Reads a config file.
 * @param source its path, for messages, and for the files that are relative to its folder
 * @throws ConfigError with every issue
 */
export function parseConfig(text: string, source: string, overrides: Overrides = {}): Config {
  const json = readJson(text);
  if ('issue' in json) throw new ConfigError(source, [json.issue]);
  return checkConfig(json.value, source, overrides);
}

/**
 * Checks a config that is already JSON, and fills in its defaults. Reads the secrets and the TLS files that it refers to:
 * the result has their content.
 * @param source see {@link parseConfig}
 * @throws ConfigError with every issue
 */
export function checkConfig(input: unknown, source: string, overrides: Overrides = {}): Config {
  const given = isObject(input) ? withFlags(input, overrides) : input;
  const { file: read, issues: unread, origins } = readReferences(objectOrEmpty(given), dirname(source));
  const file = isObject(given) ? read : given;
  // zod drops a property called `__proto__`, but an account may have that name.
  const result = configSchema.safeParse(renamed(file, PROTO, STAND_IN), { error: knownOptions });
  const issues = [
    ...unread,
    ...(result.error?.issues.flatMap((issue) => issuesOf(issue, file)) ?? []),
    ...crossChecks(objectOrEmpty(file)),
    ...(result.success ? unlimitedIssues(result.data, objectOrEmpty(file)) : []),
  ];
  if (result.success && issues.length === 0) return renamed(result.data, STAND_IN, PROTO) as Config;
  throw new ConfigError(
    source,
    issues.map((issue) => underFlag(withOrigin(issue, origins), overrides)),
  );
}

/** Reads the secrets and the TLS files that a file refers to. */
function readReferences(file: JsonObject, folder: string): WithSecrets {
  const secrets = readSecrets(file, folder);
  const listen = readTlsFiles(file.listen, 'listen', folder);
  const admin = readTlsFiles(file.admin, 'admin', folder);
  return {
    file: {
      ...secrets.file,
      ...(file.listen === undefined ? {} : { listen: listen.listener }),
      ...(file.admin === undefined ? {} : { admin: admin.listener }),
      ...(isObject(file.adjustments) ? { adjustments: withPath(objectOrEmpty(file.adjustments), folder) } : {}),
    },
    issues: [...secrets.issues, ...listen.issues, ...admin.issues],
    origins: secrets.origins,
  };
}

/** The path of the file is relative to the folder of the config. */
function withPath(adjustments: JsonObject, folder: string): JsonObject {
  const { file } = adjustments;
  return typeof file === 'string' && file !== '' ? { ...adjustments, file: resolve(folder, file) } : adjustments;
}

function withFlags(file: object, { host, port, 'admin-port': adminPort, upstream, store }: Overrides): object {
  const result: Record<string, unknown> = { ...file };
  if (upstream !== undefined) result.upstream = upstream;
  if (store !== undefined) result.store = store;
  if (host !== undefined || port !== undefined) result.listen = listenerWith(result.listen, host, port);
  if (adminPort !== undefined) result.admin = listenerWith(result.admin, undefined, adminPort);
  return result;
}

function listenerWith(listener: unknown = {}, host: string | undefined, port: string | undefined): unknown {
  if (!isObject(listener)) return listener;
  return {
    ...listener,
    ...(host === undefined ? {} : { host }),
    ...(port === undefined ? {} : { port: /^\d{1,5}$/.test(port) ? Number(port) : port }),
  };
}

/** If the value came from a flag, the issue names the flag. */
function underFlag(issue: ConfigIssue, overrides: Overrides): ConfigIssue {
  const flag = FLAGS.get(issue.path);
  const isGiven = flag !== undefined && overrides[flag] !== undefined;
  return isGiven ? { path: `--${flag}`, reason: issue.reason } : issue;
}

/** If a secret was read from elsewhere, the issue names that place, because the mistake is there. */
function withOrigin({ path, reason }: ConfigIssue, origins: ReadonlyMap<string, string>): ConfigIssue {
  const origin = origins.get(path);
  return { path, reason: origin === undefined ? reason : `${reason} (from ${origin})` };
}

/** zod's message for unknown options is replaced by the names of the known ones, which its issue does not have. */
function knownOptions(issue: z.core.$ZodRawIssue): string | undefined {
  return issue.code === 'unrecognized_keys' ? Object.keys((issue.inst as z.ZodObject).shape).join(' ') : undefined;
}

/**
 * One issue per mistake: each unknown option has its own, and for a union only the alternative that was meant is
 * reported.
 */
function issuesOf(issue: z.core.$ZodIssue, file: unknown, above: readonly PropertyKey[] = []): ConfigIssue[] {
  const path = [...above, ...issue.path].map((part) => (part === STAND_IN ? PROTO : part));
  if (issue.code === 'unrecognized_keys') {
    const known = issue.message.split(' ');
    return issue.keys.map((key) => {
      const name = key === STAND_IN ? PROTO : key;
      const hint = didYouMean(name, known, ` (expected ${alternatives(known)})`);
      return { path: formatPath([...path, name]), reason: `unknown option${hint}` };
    });
  }
  if (issue.code === 'invalid_union') {
    const meant = issue.errors.find((issues) =>
      issues.some((inner) => inner.path.length > 0 || !['invalid_type', 'invalid_value'].includes(inner.code)),
    );
    if (meant !== undefined) return meant.flatMap((inner) => issuesOf(inner, file, path));
  }
  return [{ path: formatPath(path), reason: reasonFor(issue, formatPath(path), valueAt(file, path)) }];
}

/** Nothing at these places is shown: the value may be a secret, or may have one in it. */
const SECRET =
  /^(|(listen|admin)\.tls\.(cert|key|clientCa)|keys(\[\d+\])?|idempotency|upstream|upstreams([.[].*)?|(keys\[\d+\]\.(token|sha256)|idempotency\.secret|store)(\.(env|file))?)$/;

/** What zod calls values with keys or elements. */
const SECTIONS: readonly string[] = ['object', 'record', 'array'];

function reasonFor(issue: z.core.$ZodIssue, path: string, value: unknown): string {
  if (value === undefined && issue.code === 'invalid_type') return `is missing (expected ${noun(issue.expected)})`;
  const reason = expectation(issue);
  // The reason of a custom check ends with the value already.
  if (issue.code === 'custom' || value === '') return reason;
  // A text in place of an object or an array may be a URL with a password, or another secret.
  const isMisplaced = typeof value === 'string' && issue.code === 'invalid_type' && SECTIONS.includes(issue.expected);
  if (!isMisplaced && !SECRET.test(path)) return `${reason}, got ${describe(value)}`;
  const isWrongType = issue.code === 'invalid_type' || issue.code === 'invalid_union';
  return isWrongType ? `${reason}, got ${noun(typeName(value))}` : reason;
}

/** zod's own messages in our words. Messages that the schema sets itself stay. */
function expectation(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case 'too_big':
      return `must be at most ${issue.maximum}`;
    case 'too_small':
      return issue.origin === 'string' ? 'must not be empty' : `must be at least ${issue.minimum}`;
    case 'invalid_type':
      return `must be ${noun(issue.expected)}`;
    case 'invalid_value':
      return `must be one of ${issue.values.map((value) => JSON.stringify(value)).join(', ')}`;
    default:
      return issue.message;
  }
}

const NOUNS: Readonly<Record<string, string>> = {
  int: 'a whole number',
  boolean: 'true or false',
  null: 'null',
  record: 'an object',
};

function noun(type: string): string {
  return NOUNS[type] ?? (/^[aeiou]/.test(type) ? `an ${type}` : `a ${type}`);
}

function typeName(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'array' : typeof value;
}

function valueAt(file: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>((value, part) => (value as Record<PropertyKey, unknown> | undefined)?.[part], file);
}

const PROTO = '__proto__';
const STAND_IN = '\u0000__proto__';

/** A copy in which every property `from` is called `to`. */
function renamed(value: unknown, from: string, to: string): unknown {
  if (Array.isArray(value)) return value.map((element) => renamed(element, from, to));
  if (!isObject(value)) return value;
  // fromEntries defines properties. An assignment of `__proto__` would set the prototype.
  return Object.fromEntries(
    Object.entries(value).map(([key, element]) => [key === from ? to : key, renamed(element, from, to)]),
  );
}
