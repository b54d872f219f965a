import { createLimiter, type Limiter } from 'headgate';
import type { LayeredLimits, LimitSet } from 'headgate/limits';
import { recommendedLimits } from 'headgate/recommended';
import type { LimitStore } from 'headgate/stores';
import { isLimited } from './account-source.ts';
import type { ConfigIssue } from './config-error.ts';
import type { JsonObject } from './json.ts';
import type { Config, ShadowConfig } from './schema.ts';

const NO_WINDOWS =
  'has no window, so no request is limited: add one, such as "default": { "allMethods": ["60/1m"] }, or say so with "unlimited": true';

/** The limiter that a config describes. */
export function limiterOf(config: Config, store: LimitStore): Limiter {
  // Accounts, providers and routes of a request come from the config, which is checked separately.
  return createLimiter({ store, limits: limitsOf(config), validate: false });
}

/** The layers of a candidate. */
export function candidateOf({ routes }: Pick<Config, 'routes'>, { limits }: ShadowConfig): LayeredLimits {
  return limitsOf({ limits, routes });
}

/** The layers of a config; with `recommended`, each provider starts from headgate's recommended limits. */
export function limitsOf({ limits, routes }: Pick<Config, 'limits' | 'routes'>): LayeredLimits {
  const { recommended, plans, providers, accounts, groups, lanes } = limits;
  // The checks of a config ensure that one without windows says so itself, or contains no route that could be limited.
  const common: LimitSet = hasWindows(limits) ? limits.default : { unlimited: true };
  if (!recommended) return { default: common, plans, providers, accounts, groups, lanes };
  const listed = new Set(routes.map(({ route }) => route));
  const starts = new Map<string, LimitSet>(Object.entries(recommendedLimits));
  const given = new Map<string, LimitSet>(Object.entries(providers));
  const names = new Set([...starts.keys(), ...given.keys()]);
  const merged = [...names].map((name) => [name, merge(starts.get(name), given.get(name), listed)] as const);
  return { default: common, plans, providers: Object.fromEntries(merged), accounts, groups, lanes };
}

/**
 * A config that limits nothing has to say so, because a forgotten limit looks the same. Without the section `limits`,
 * only a route with an account needs a limit.
 */
export function unlimitedIssues({ limits, routes }: Config, file: JsonObject): ConfigIssue[] {
  if (hasWindows(limits))
    return limits.unlimited ? [{ path: 'limits.unlimited', reason: 'must not be given beside windows' }] : [];
  const isNeeded = file.limits !== undefined || routes.some(isLimited);
  return isNeeded && !limits.unlimited ? [{ path: 'limits', reason: NO_WINDOWS }] : [];
}

/** The same for a candidate, whose config always contains the section. */
export function unlimitedCandidateIssues({ limits }: ShadowConfig): ConfigIssue[] {
  if (hasWindows(limits))
    return limits.unlimited ? [{ path: 'shadow.limits.unlimited', reason: 'must not be given beside windows' }] : [];
  return limits.unlimited ? [] : [{ path: 'shadow.limits', reason: NO_WINDOWS }];
}

/** Whether any limit contains a window. */
export function hasWindows({ recommended, default: common, plans, providers, accounts }: Config['limits']): boolean {
  const layers = [common, ...Object.values(plans), ...Object.values(providers), ...Object.values(accounts)];
  return recommended || layers.some(layerHasWindows);
}

/** Whether a limit of a layer contains a window. */
export function layerHasWindows({ allMethods = [], routes = {} }: Config['limits']['default']): boolean {
  const windows = 'windows' in allMethods ? allMethods.windows : allMethods;
  return windows.length > 0 || Object.values(routes).some((limit) => limit.length > 0);
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
