import type { ConfigIssue } from './config-error.ts';
import type { JsonObject } from './json.ts';
import type { Config } from './schema.ts';

const UNUSED =
  'no route is idempotent, so no key is stored: write "idempotent": true for the routes that must not run twice';
/** The configs whose file has the section: its defaults look the same. */
const withSection = new WeakSet<Config>();

/** Notes whether a config has the section `idempotency`. */
export function noteSection<Checked extends Config>(config: Checked, file: JsonObject): Checked {
  if (file.idempotency !== undefined) withSection.add(config);
  return config;
}

/** A section that applies to no route. A program that asks for decisions can claim keys for any route. */
export function idempotencyWarnings(config: Config): ConfigIssue[] {
  const { routes, decisions } = config;
  if (!withSection.has(config) || routes.length === 0 || decisions !== undefined) return [];
  return routes.some(({ idempotent }) => idempotent) ? [] : [{ path: 'idempotency', reason: UNUSED }];
}
