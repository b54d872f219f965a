import type { LimitStore } from '../../core/ports.ts';
import type { LayeredLimits, LimitSet } from '../../limits/layers.ts';
import { createLimiter, type Limiter } from '../../limits/limiter.ts';
import { recommendedLimits } from '../../limits/recommended.ts';
import type { Config } from './schema.ts';

/** The limiter that a config describes. */
export function limiterOf(config: Config, store: LimitStore): Limiter {
  return createLimiter({ store, limits: limitsOf(config) });
}

/** The layers of a config; with `recommended`, each provider starts from headgate's recommendation. */
export function limitsOf({ limits, routes }: Config): LayeredLimits {
  const { recommended, default: everybody, providers, accounts } = limits;
  if (!recommended) return { default: everybody, providers, accounts };
  const known = new Set(routes.map(({ route }) => route));
  const started = new Map<string, LimitSet>(Object.entries(recommendedLimits));
  const names = new Set([...started.keys(), ...Object.keys(providers)]);
  const merged = [...names].map((name) => [name, merge(started.get(name), own(providers, name), known)] as const);
  return { default: everybody, providers: Object.fromEntries(merged), accounts };
}

/** Limit by limit: the file's own, else the recommendation; less recommendations for routes that the file does not have. */
function merge(recommended: LimitSet | undefined, given: LimitSet | undefined, known: ReadonlySet<string>): LimitSet {
  const routes = Object.entries(recommended?.routes ?? {}).filter(([route]) => known.has(route));
  const allMethods = given?.allMethods ?? recommended?.allMethods;
  return {
    ...(allMethods === undefined ? {} : { allMethods }),
    routes: Object.fromEntries([...routes, ...Object.entries(given?.routes ?? {})]),
  };
}

function own<T>(record: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(record, name) ? record[name] : undefined;
}
