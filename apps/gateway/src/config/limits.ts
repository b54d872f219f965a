import { createLimiter, type Limiter, type LimitInput } from 'headgate';
import type { LayeredLimits, LimitSet, RouteLimitInput } from 'headgate/limits';
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

/** Whether any limit contains a window, or bounds the requests in flight. */
export function hasWindows({ recommended, default: common, plans, providers, accounts }: Config['limits']): boolean {
  const layers = [common, ...Object.values(plans), ...Object.values(providers), ...Object.values(accounts)];
  return recommended || layers.some(layerHasWindows);
}

/** Whether a limit of a layer contains a window, or bounds the requests in flight. */
export function layerHasWindows({ allMethods = [], routes = {} }: Config['limits']['default']): boolean {
  return [allMethods, ...Object.values(routes)].some(rejects);
}

/** The windows of a limit; undefined if it leaves them to less specific layers. */
export function windowsOf(limit: LimitInput | RouteLimitInput | undefined): LimitInput | undefined {
  return limit === undefined || isList(limit) ? limit : limit.windows;
}

/** The most requests in flight of a limit; undefined if it leaves them to less specific layers. */
export function inFlightOf(limit: LimitInput | RouteLimitInput | undefined): number | false | undefined {
  return limit === undefined || isList(limit) ? undefined : limit.inFlight;
}

/** Whether a limit can reject a request. */
export function rejects(limit: LimitInput | RouteLimitInput | undefined): boolean {
  return (windowsOf(limit) ?? []).length > 0 || typeof inFlightOf(limit) === 'number';
}

function isList(limit: LimitInput | RouteLimitInput): limit is LimitInput {
  return Array.isArray(limit);
}

/**
 * Per limit name, the file wins over the recommendation. Recommendations for routes that the file does not list are
 * dropped.
 */
function merge(start: LimitSet | undefined, given: LimitSet | undefined, listed: ReadonlySet<string>): LimitSet {
  const starts = new Map(Object.entries(start?.routes ?? {}).filter(([route]) => listed.has(route)));
  const own = Object.entries(given?.routes ?? {}).map(
    ([route, limit]) => [route, over(starts.get(route), limit)] as const,
  );
  const allMethods = given?.allMethods === undefined ? start?.allMethods : over(start?.allMethods, given.allMethods);
  return {
    ...(allMethods === undefined ? {} : { allMethods }),
    routes: Object.fromEntries([...starts, ...own]),
  };
}

/** A limit of the file in place of a recommended one, whose windows it keeps if it has only `inFlight`. */
function over<Given extends LimitInput | RouteLimitInput>(
  start: LimitInput | RouteLimitInput | undefined,
  given: Given,
): Given {
  const windows = windowsOf(given) ?? windowsOf(start);
  return isList(given) || windows === undefined ? given : { ...given, windows };
}
