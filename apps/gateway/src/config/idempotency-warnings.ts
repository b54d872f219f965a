import { isSeconds } from 'headgate/internal';
import type { ConfigIssue } from './config-error.ts';
import type { JsonObject } from './json.ts';
import type { Config } from './schema.ts';

/** The configs whose file has the section: its defaults look the same. */
const withSection = new WeakSet<Config>();

/** Notes whether a config has the section `idempotency`. */
export function noteSection<Checked extends Config>(config: Checked, file: JsonObject): Checked {
  if (file.idempotency !== undefined) withSection.add(config);
  return config;
}

/** Settings of idempotency that are valid but probably mistakes. */
export function idempotencyWarnings(config: Config): ConfigIssue[] {
  const { routes, idempotency, decisions } = config;
  const retentions = [
    { path: ['idempotency'], ms: idempotency.retentionMs },
    ...routes.map(({ idempotent }, i) => ({
      path: [`routes[${i}]`, 'idempotent'],
      ms: typeof idempotent === 'object' ? idempotent.retentionMs : undefined,
    })),
  ];
  // A program that asks for decisions can claim keys for any route.
  const isUnused = withSection.has(config) && routes.length > 0 && decisions === undefined;
  return [
    ...(isUnused && !routes.some(({ idempotent }) => idempotent) ? [{ path: 'idempotency', reason: UNUSED }] : []),
    ...retentions.flatMap(({ path, ms }) => {
      if (ms === undefined || !isSeconds(ms)) return [];
      return [{ path: [...path, 'retentionMs'].join('.'), reason: `${ms} ms: are seconds meant? Multiply by 1000` }];
    }),
  ];
}

const UNUSED =
  'no route is idempotent, so no key is stored: write "idempotent": true for the routes that must not run twice';
