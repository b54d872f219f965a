import type { LimitStore } from '../../core/ports.ts';
import type { LayeredLimits, LimitSet } from '../../limits/layers.ts';
import { createLimiter, type Limiter } from '../../limits/limiter.ts';
import { recommendedLimits } from '../../limits/recommended.ts';
import type { Config } from './schema.ts';

/** The limiter that a config describes. */
export function limiterOf(config: Config, store: LimitStore): Limiter {
  // Accounts, providers and routes of a request come from the config, which has checks of its own.
  return createLimiter({ store, limits: limitsOf(config), validate: false });
}

/** The layers of a config; with `recommended`, each provider starts from headgate's recommended limits. */
export function limitsOf({ limits, routes }: Config): LayeredLimits {
  const { recommended, default: common, providers, accounts } = limits;
  if (!recommended) return { default: common, providers, accounts };
  const listed = new Set(routes.map(({ route }) => route));
  const starts = new Map<string, LimitSet>(Object.entries(recommendedLimits));
  const given = new Map<string, LimitSet>(Object.entries(providers));
  const names = new Set([...starts.keys(), ...given.keys()]);
  const merged = [...names].map((name) => [name, merge(starts.get(name), given.get(name), listed)] as const);
  return { default: common, providers: Object.fromEntries(merged), accounts };
}

/**
 * Per limit name, the file wins over the recommendation. Recommendations for routes that the file does not list are
 * dropped.
 */
function merge(start: LimitSet | undefined, given: LimitSet | undefined, listed: ReadonlySet<string>): LimitSet {
  const routes = Object.entries(start?.routes ?? {}).filter(([route]) => listed.has(route));
  const allMethods = given?.allMethods ?? start?.allMethods;
  return {
    ...(allMethods === undefined ? {} : { allMethods }),
    routes: Object.fromEntries([...routes, ...Object.entries(given?.routes ?? {})]),
  };
}
