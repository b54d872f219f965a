import { createClientIp } from 'headgate/client-ip';
import { recommendedLimits } from 'headgate/recommended';
import { consumerOf, countsFor, isLimited, isNamed, NO_ACCOUNT } from './account-source.ts';
import { type ConfigIssue, formatPath } from './config-error.ts';
import { accountsIn } from './consumers.ts';
import { hasWindows, layerHasWindows } from './limits.ts';
import type { Config } from './schema.ts';
import { didYouMean } from './suggest.ts';

const HOW =
  'give the routes an "account": "key", "application", "address", or where requests name the account, such as "header.x-account"';
const NO_ROUTE = `no route counts requests, so no request is limited: ${HOW}`;
const NO_KEYS = `${NO_ROUTE}; or give the config keys: then it counts per key`;
const NOT_COUNTED = 'the route has no account, so this never applies: give it one, such as "account": "key"';
const NOT_NAMED =
  'never applies, because no route takes its account from the request: only accounts of the config have a provider';
const NO_REQUEST = 'so no request is limited: add limits of "default"';

/**
 * Public routes count per address unless they say otherwise. All others count per key if none of them says anything:
 * the limits would not apply to any of them.
 */
export function withDefaultAccount(config: Config): Config {
  const { keys, routes, limits, shadow } = config;
  const hasLimits = hasWindows(limits) || (shadow !== undefined && hasWindows(shadow.limits));
  if (!hasLimits) return config;
  const forKeys = keys.length > 0 && !routes.some((route) => !route.public && isLimited(route)) ? 'key' : undefined;
  return {
    ...config,
    routes: routes.map((route) => {
      const account = route.account ?? (route.public ? 'address' : forKeys);
      return account === undefined ? route : { ...route, account };
    }),
  };
}

/** Limits that can never apply are faults: the config would look limited, and would limit nothing. */
export function unusedLimits(config: Config): ConfigIssue[] {
  const { limits, shadow } = config;
  return [
    ...unusedIn('limits', limits, config),
    ...(shadow === undefined ? [] : unusedIn('shadow.limits', shadow.limits, config)),
  ];
}

/** @param place `limits` or `shadow.limits` */
export function unusedIn(place: string, limits: Config['limits'], config: Config): ConfigIssue[] {
  const { routes, keys } = config;
  // Without routes every request is refused, which is a warning.
  if (!hasWindows(limits) || routes.length === 0) return [];
  if (!routes.some(isLimited)) {
    const isDefault = keys.length === 0 && routes.some(({ account }) => account !== NO_ACCOUNT);
    return [{ path: place, reason: isDefault ? NO_KEYS : NO_ROUTE }];
  }
  const issues = [...unusedAccounts(place, limits, config), ...unusedRoutes(place, limits, config)];
  if (!routes.some(isNamed)) {
    const root = place.split('.');
    for (const name of Object.keys(limits.providers))
      issues.push({ path: formatPath([...root, 'providers', name]), reason: NOT_NAMED });
    if (limits.recommended) issues.push({ path: `${place}.recommended`, reason: NOT_NAMED });
  }
  return issues.length > 0 ? issues : unreached(place, limits, config);
}

/** Limits of accounts that no request can have. */
function unusedAccounts(
  place: string,
  limits: Config['limits'],
  { routes, clientAddress: { ipv6Prefix } }: Config,
): ConfigIssue[] {
  const nameOf = createClientIp({ ipv6Prefix, validate: false });
  return Object.keys(limits.accounts).flatMap((id) => {
    const path = formatPath([...place.split('.'), 'accounts', id]);
    const { consumer, name = '' } = consumerOf(id) ?? {};
    const written = consumer === 'address' ? nameOf(name.split('/', 1)[0], {}) : name;
    if (written === undefined) return [{ path, reason: 'must name an address, such as "address:192.0.2.1"' }];
    if (written !== name) return [{ path, reason: `never applies: write it as "address:${written}"` }];
    if (routes.some((route) => countsFor(route, id))) return [];
    const what = consumer === undefined ? 'takes its account from the request' : `has "account": "${consumer}"`;
    return [{ path, reason: `no route ${what}, so this never applies` }];
  });
}

/** Limits of routes that are not limited, or not for this account. */
function unusedRoutes(place: string, limits: Config['limits'], { routes }: Config): ConfigIssue[] {
  const byName = new Map(routes.map((route) => [route.route, route]));
  const layers = [
    { path: ['default'], layer: limits.default, id: undefined },
    ...(['plans', 'providers', 'accounts', 'groups'] as const).flatMap((kind) =>
      Object.entries(limits[kind]).map(([name, layer]) => ({
        path: [kind, name],
        layer,
        id: kind === 'accounts' ? name : undefined,
      })),
    ),
  ];
  return layers.flatMap(({ path, layer, id }) =>
    Object.keys(layer.routes ?? {}).flatMap((name) => {
      // The file's own checks report a route that does not exist.
      const route = byName.get(name);
      if (route === undefined) return [];
      const at = formatPath([...place.split('.'), ...path, 'routes', name]);
      if (!isLimited(route)) return [{ path: at, reason: NOT_COUNTED }];
      if (id === undefined || countsFor(route, id)) return [];
      return [{ path: at, reason: `the route counts by ${route.account}, so this never applies` }];
    }),
  );
}

/** The limits of providers and plans, if no account has any of these: then no limit applies to any request. */
function unreached(place: string, limits: Config['limits'], config: Config): ConfigIssue[] {
  const all = accountsIn(config);
  const names = {
    providers: all.flatMap(({ provider }) => provider ?? []),
    plans: all.flatMap(({ plan }) => plan ?? []),
  };
  const kinds = ['providers', 'plans'] as const;
  const isReached =
    // If the file lists no accounts, requests that name one are refused.
    (config.accounts.length === 0 && config.routes.filter(isLimited).every(isNamed)) ||
    [limits.default, ...Object.values(limits.accounts)].some(layerHasWindows) ||
    kinds.some((kind) => names[kind].some((name) => layerHasWindows(limits[kind][name] ?? {}))) ||
    (limits.recommended && names.providers.some((name) => Object.hasOwn(recommendedLimits, name)));
  if (isReached) return [];
  if (limits.recommended)
    return [{ path: place, reason: `no account has a provider with recommended limits, ${NO_REQUEST}` }];
  return kinds.flatMap((kind) =>
    Object.keys(limits[kind]).map((name) => ({
      path: formatPath([...place.split('.'), kind, name]),
      reason: `no account has this ${kind.slice(0, -1)}, ${NO_REQUEST}${didYouMean(name, names[kind])}`,
    })),
  );
}
