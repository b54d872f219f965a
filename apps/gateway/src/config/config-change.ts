import { isDeepStrictEqual } from 'node:util';
import { isObject, type JsonObject, objectOrEmpty } from './json.ts';
import type { Config } from './schema.ts';

/** Whether a reload applies a key of the config, or a restart must. */
type Effect = 'reload' | 'restart';

/** A section takes effect as a whole, or key by key. */
type Effects<Section> = { readonly [Key in keyof Section]-?: Effect | EffectsOfKeys<NonNullable<Section[Key]>> };
type EffectsOfKeys<Value> = Value extends readonly unknown[] | string | number | boolean ? never : Effects<Value>;

/**
 * The effect of a change of each key. Rules, and settings that are cheap to change, are reloaded. Addresses, the store,
 * and bounds for which the process reserves room at its start need a restart.
 */
export const EFFECTS: Effects<Config> = {
  $schema: 'reload',
  // A reload changes the content of the certificate's files. Turning TLS on or off needs a restart.
  listen: { host: 'restart', port: 'restart', tls: 'reload' },
  admin: {
    host: 'restart',
    port: 'restart',
    tls: 'reload',
    tokens: 'reload',
    hosts: 'reload',
    console: 'reload',
    insecure: 'reload',
  },
  decisions: { host: 'restart', port: 'restart', tls: 'reload', secret: 'reload' },
  rateLimitService: { host: 'restart', port: 'restart', insecure: 'reload', domains: 'reload' },
  workers: 'restart',
  log: 'reload',
  store: 'restart',
  upstream: 'reload',
  upstreams: 'reload',
  providers: 'reload',
  forwardFields: 'reload',
  upstreamTimeoutMs: 'reload',
  upstreamAnswerMs: 'reload',
  upstreamIdleMs: 'restart',
  maxUpstreamConnections: 'restart',
  clientTimeoutMs: 'reload',
  maxBodyBytes: 'reload',
  maxBufferedBytes: 'restart',
  maxConnections: 'restart',
  shutdownDelayMs: 'reload',
  drainMs: 'reload',
  headers: 'reload',
  storeDeadlineMs: 'restart',
  onStoreFailure: 'restart',
  leases: 'restart',
  idempotency: 'reload',
  perApplication: 'restart',
  perAddress: 'reload',
  clientAddress: 'reload',
  keys: 'reload',
  accounts: 'reload',
  routes: 'reload',
  cors: 'reload',
  strictSiblings: 'reload',
  limits: 'reload',
  adjustments: 'restart',
  shadow: 'reload',
};

/** The result of comparing a config with the current one. */
export interface ConfigChange {
  /** The wanted config, with the old value of every key that needs a restart. */
  readonly config: Config;
  /** Keys that change now: of the file's top level, or paths such as `listen.tls`. */
  readonly changed: readonly string[];
  /** Keys that would change with a restart. */
  readonly needsRestart: readonly string[];
}

/** The effects of a reload. Keys are at the file's top level, or paths such as `listen.tls`. */
export interface ReloadReport {
  /** Keys whose values changed. */
  readonly changed: readonly string[];
  /** Keys that stay as they were until a restart. */
  readonly needsRestart: readonly string[];
}

/** @param kept paths that could not be changed after all, such as `listen.tls` */
export function reloadReport({ changed, needsRestart }: ConfigChange, kept: readonly string[]): ReloadReport {
  return {
    changed: changed.filter((path) => !kept.includes(path)),
    needsRestart: [...new Set([...needsRestart, ...kept])],
  };
}

/** Compares the current config with the wanted config. */
export function configChange(current: Config, wanted: Config): ConfigChange {
  const changed: string[] = [];
  const needsRestart: string[] = [];
  /** The wanted section, with the old values of what needs a restart. */
  const merge = (before: JsonObject, after: JsonObject, effects: object, above: string) => {
    const merged: Record<string, unknown> = { ...after };
    for (const [key, effect] of Object.entries(effects)) {
      const [old, value] = [before[key], after[key]];
      const path = above + key;
      if (isDeepStrictEqual(old, value)) continue;
      if (effect === 'reload') changed.push(path);
      else if (effect !== 'restart' && isObject(old) && isObject(value))
        merged[key] = merge(objectOrEmpty(old), objectOrEmpty(value), effect, `${path}.`);
      else {
        needsRestart.push(path);
        merged[key] = old;
      }
    }
    return merged;
  };
  const config = merge(current, wanted, EFFECTS, '') as Config;
  return { config, changed, needsRestart };
}
