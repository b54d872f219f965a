import { dirname, resolve } from 'node:path';
import { checkJson } from './check-json.ts';
import { ConfigError, type ConfigIssue } from './config-error.ts';
import { crossChecks } from './cross-checks.ts';
import { providerGroupIssues, withProviderGroups } from './groups.ts';
import { withoutSecrets } from './hide-secrets.ts';
import { noteSection } from './idempotency-warnings.ts';
import { isObject, type JsonObject, objectOrEmpty, readJson } from './json.ts';
import { unlimitedCandidateIssues, unlimitedIssues } from './limits.ts';
import { unlimitedDescriptors } from './rate-limit-service-checks.ts';
import { type Config, configSchema } from './schema.ts';
import { readSecrets, type WithSecrets } from './secrets.ts';
import { readStoreCa, readTlsFiles } from './tls-files.ts';
import { unusedLimits, withDefaultAccount } from './unused-limits.ts';

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
 * No issue shows a value at these places, or below them: it may be a secret, or contain one. In a credential every field
 * counts, because a token may stand in a wrong one. Everywhere else, {@link withoutSecrets} decides by the value.
 */
const SECRET =
  /^(|idempotency|((admin\.tokens|keys|store|upstreams?|(idempotency|decisions)\.secret)|(listen|admin|decisions)\.tls\.(cert|key|clientCa))([.[].*)?)$/;

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
 * Checks a config that is already JSON, and fills in its defaults. Reads the secrets and the TLS files that it refers
 * to: the result contains their content.
 * @param source see {@link parseConfig}
 * @throws ConfigError with every issue
 */
export function checkConfig(input: unknown, source: string, overrides: Overrides = {}): Config {
  const given = isObject(input) ? withFlags(input, overrides) : input;
  const { file: read, issues: unread, origins } = readReferences(objectOrEmpty(given), dirname(source));
  const file = isObject(given) ? read : given;
  const parsed = checkJson(configSchema, file, SECRET);
  const checked = 'value' in parsed ? { value: withProviderGroups(withDefaultAccount(parsed.value)) } : parsed;
  const issues = [
    ...unread,
    ...('issues' in checked ? checked.issues : []),
    ...crossChecks(objectOrEmpty(file)),
    ...('value' in checked ? unlimitedIssues(checked.value, objectOrEmpty(file)) : []),
    ...('value' in checked ? unusedLimits(checked.value) : []),
    ...('value' in checked ? unlimitedDescriptors(checked.value) : []),
    ...('value' in checked ? providerGroupIssues(checked.value) : []),
    ...('value' in checked && checked.value.shadow ? unlimitedCandidateIssues(checked.value.shadow) : []),
  ];
  if ('value' in checked && issues.length === 0) return noteSection(checked.value, objectOrEmpty(file));
  throw new ConfigError(
    source,
    withoutSecrets(issues).map((issue) => underFlag(withOrigin(issue, origins), overrides)),
  );
}

/** Reads the secrets and the TLS files that a file refers to. */
function readReferences(file: JsonObject, folder: string): WithSecrets {
  const secrets = readSecrets(file, folder);
  const listen = readTlsFiles(file.listen, 'listen', folder);
  const admin = readTlsFiles(secrets.file.admin, 'admin', folder);
  const decisions = readTlsFiles(secrets.file.decisions, 'decisions', folder);
  const store = readStoreCa(secrets.file.store, folder);
  return {
    file: {
      ...secrets.file,
      ...(file.listen === undefined ? {} : { listen: listen.listener }),
      ...(file.admin === undefined ? {} : { admin: admin.listener }),
      ...(file.decisions === undefined ? {} : { decisions: decisions.listener }),
      ...(file.store === undefined ? {} : { store: store.section }),
      ...(isObject(file.adjustments) ? { adjustments: withPath(objectOrEmpty(file.adjustments), folder) } : {}),
    },
    issues: [...secrets.issues, ...listen.issues, ...admin.issues, ...decisions.issues, ...store.issues],
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
