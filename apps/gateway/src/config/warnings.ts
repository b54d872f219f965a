import type { RouteTemplate } from 'headgate-simulate/routes';
import { isLimited, isNamed } from './account-source.ts';
import { type ConfigIssue, formatPath } from './config-error.ts';
import { unitWarnings } from './cost-checks.ts';
import { groupWarnings } from './groups.ts';
import { withoutSecrets } from './hide-secrets.ts';
import { idempotencyWarnings } from './idempotency-warnings.ts';
import { laneWarnings } from './lanes.ts';
import { layerWarnings } from './layer-warnings.ts';
import { layerHasWindows } from './limits.ts';
import { isLoopback } from './loopback.ts';
import { isObeyed } from './request-fields.ts';
import { parseRoute } from './routes.ts';
import { upstreamSettings } from './schema/upstream.ts';
import type { Config } from './schema.ts';
import { secondsWarnings } from './seconds-warnings.ts';
import { avoidingSpelling, tolerantTemplate } from './sibling-routes.ts';
import { parseStore } from './store-url.ts';
import { didYouMean } from './suggest.ts';
import { type ListenerName, validityOf } from './tls-files.ts';
import { uncountedCosts } from './uncounted-costs.ts';
import { unlimitedRequests } from './unlimited-requests.ts';

/** A shorter secret can be found by trial by a reader of the store. */
const GOOD_SECRET_LENGTH = 16;
/** Most pairs of routes in the warnings. */
const MAX_PAIRS = 10;
/** A listener with this host has every address of the machine. */
const ANY_HOST: ReadonlySet<string> = new Set(['0.0.0.0', '::']);

/** Settings that are valid but probably mistakes. The gateway serves with them. */
export function warningsFor(config: Config): ConfigIssue[] {
  const { keys, accounts, routes, limits, idempotency, admin, maxBodyBytes, maxBufferedBytes, perApplication } = config;
  const hasAccountRoute = routes.some(isNamed);
  const providers = new Set(accounts.flatMap(({ provider }) => provider ?? []));
  const payers = [...accounts, ...keys];
  const plans = new Set(payers.flatMap(({ plan }) => plan ?? []));
  const applications = new Set(keys.map(({ application }) => application));
  return withoutSecrets([
    ...warnIf(
      keys.length === 0 && !(routes.length > 0 && routes.every((route) => route.public)),
      'keys',
      `the config has no keys, so every request ${routes.some((route) => route.public) ? 'for a route that is not public ' : ''}is refused`,
    ),
    ...warnIf(
      // A program that asks for decisions needs a key for every route.
      config.decisions === undefined && keys.length > 0 && routes.length > 0 && routes.every((route) => route.public),
      'keys',
      'every route is public, so no request needs one of the keys: leave out "public" where a key is needed',
    ),
    ...keys.flatMap(({ expiresAt }, i) =>
      warnIf(
        expiresAt !== undefined && Date.parse(expiresAt) <= Date.now(),
        `keys[${i}].expiresAt`,
        'the key expired, so requests with it are refused',
      ),
    ),
    ...ownUpstreams(config),
    ...warnIf(routes.length === 0, 'routes', 'the config has no routes, so every request is refused'),
    ...warnIf(
      hasAccountRoute && accounts.length === 0,
      'accounts',
      'the config has no accounts, so requests for a route with an account are refused',
    ),
    ...accounts.flatMap(({ application }, i) =>
      warnIf(
        keys.length > 0 && !applications.has(application),
        `accounts[${i}].application`,
        'no key belongs to this application, so no request can reach the account',
      ),
    ),
    ...keys.flatMap(({ application }, i) =>
      warnIf(
        hasAccountRoute && accounts.length > 0 && !accounts.some((account) => account.application === application),
        `keys[${i}].application`,
        'no account belongs to this application, so a route with an account refuses the key',
      ),
    ),
    ...unlimitedRoutes(config),
    ...unlimitedRequests(config),
    ...layerWarnings(config),
    ...idempotencyWarnings(config),
    ...secondsWarnings(config),
    ...groupWarnings(config),
    ...uncountedCosts(config),
    ...laneWarnings(config),
    ...unitWarnings(config),
    ...warnIf(
      config.store === 'memory' && routes.some(({ idempotent }) => Boolean(idempotent)),
      'store',
      'a restart forgets every idempotency key, so a retry after it is executed again: use Redis or PostgreSQL',
    ),
    ...warnIf(
      config.store === 'memory' && config.leases !== false,
      'leases',
      'have no use with the store in memory, which decides without a call',
    ),
    ...warnIf(
      isUnverified(config),
      typeof config.store === 'string' ? 'store' : 'store.postgres.url',
      'with sslmode=require nobody checks the certificate of the server, so an attacker can take its place: use verify-full',
    ),
    ...routes.flatMap(({ route }, i) => {
      const segment = route.split('/').find((part) => part.startsWith(':'));
      const reason = `${segment} is matched letter by letter; write a parameter as {${segment?.slice(1)}}`;
      return warnIf(segment !== undefined, `routes[${i}].route`, reason);
    }),
    ...(config.strictSiblings ? [] : siblingWarnings(routes)),
    ...Object.keys(limits.providers).flatMap((name) =>
      warnIf(
        accounts.length > 0 && !providers.has(name),
        formatPath(['limits', 'providers', name]),
        `no account of the file has this provider${didYouMean(name, [...providers])}`,
      ),
    ),
    ...Object.keys(limits.plans).flatMap((name) =>
      warnIf(
        payers.length > 0 && !plans.has(name),
        formatPath(['limits', 'plans', name]),
        `no account or key of the file has this plan${didYouMean(name, [...plans])}`,
      ),
    ),
    ...unusedUpstreams(config),
    ...Object.keys(config.providers).flatMap((name) =>
      warnIf(
        accounts.length > 0 && !providers.has(name),
        formatPath(['providers', name]),
        `no account of the file has this provider${didYouMean(name, [...providers])}`,
      ),
    ),
    ...config.forwardFields.flatMap((name, i) =>
      warnIf(!isObeyed(name.toLowerCase()), `forwardFields[${i}]`, `${name} is forwarded without being listed`),
    ),
    ...certificateWarnings('listen', config.listen),
    ...(admin === undefined ? [] : certificateWarnings('admin', admin)),
    ...(config.decisions === undefined ? [] : certificateWarnings('decisions', config.decisions)),
    ...warnIf(
      admin !== undefined && !isLoopback(admin.host) && admin.tls?.clientCa === undefined,
      'admin.host',
      'other machines can reach this address, and /metrics needs no key: use 127.0.0.1, or let a firewall admit only your monitoring',
    ),
    ...warnIf(
      maxBufferedBytes < maxBodyBytes,
      'maxBufferedBytes',
      'smaller than maxBodyBytes, so a longer body that must be buffered is always refused',
    ),
    ...warnIf(
      perApplication.maxBufferedBytes < maxBodyBytes,
      'perApplication.maxBufferedBytes',
      'smaller than maxBodyBytes, so a longer body that must be buffered is always refused',
    ),
    ...warnIf(
      idempotency.secret !== undefined && idempotency.secret.length < GOOD_SECRET_LENGTH,
      'idempotency.secret',
      `shorter than ${GOOD_SECRET_LENGTH} characters, so it can be guessed`,
    ),
  ]);
}

function isUnverified({ store }: Config): boolean {
  const url = parseStore(store);
  return url?.kind === 'postgres' && url.sslMode === 'require';
}

/** Each request would come back, until no connection is left. */
function ownUpstreams({ upstream, upstreams, listen }: Config): ConfigIssue[] {
  const isOwn = (url: string): boolean => {
    const { hostname, port, protocol } = new URL(url);
    const host = hostname.replace(/^\[(.*)\]$/, '$1');
    const isHere = host === listen.host || (isLoopback(host) && (isLoopback(listen.host) || ANY_HOST.has(listen.host)));
    return isHere && Number(port || (protocol === 'https:' ? 443 : 80)) === listen.port;
  };
  const urls = [
    ['upstream', upstream] as const,
    ...Object.entries(upstreams).map(([name, given]) => [formatPath(['upstreams', name]), given] as const),
  ];
  return urls.flatMap(([path, given]) =>
    warnIf(
      isOwn(upstreamSettings(given).url),
      path,
      'is the address of listen, so the gateway forwards requests to itself',
    ),
  );
}

function unusedUpstreams({ upstreams, routes, providers }: Config): ConfigIssue[] {
  const used = new Set([...routes, ...Object.values(providers)].flatMap(({ upstream }) => upstream ?? []));
  return Object.keys(upstreams).flatMap((name) =>
    warnIf(!used.has(name), formatPath(['upstreams', name]), 'no route and no provider uses this upstream'),
  );
}

/** Without the word, a forgotten account looks the same. One warning, because there may be many such routes. */
function unlimitedRoutes({ routes, limits }: Config): ConfigIssue[] {
  const unlimited = routes.filter(({ account }) => account === undefined);
  const [first] = unlimited;
  if (first === undefined || !layerHasWindows(limits.default) || !routes.some(isLimited)) return [];
  const others = unlimited.length === 1 ? '' : `, nor are ${unlimited.length - 1} others`;
  const reason = `no account, so the route is not limited${others}: write "account": "key" to count per API key, or "none" if this is meant`;
  return [{ path: `routes[${routes.indexOf(first)}]`, reason }];
}

/**
 * A parameter or a wildcard beside a route takes other spellings of its paths, and so avoids that route's limits, and its
 * idempotency keys.
 */
function siblingWarnings(routes: Config['routes']): ConfigIssue[] {
  const templates = routes.map(({ route }) => tolerantTemplate(parseRoute(route) as RouteTemplate));
  const pairs = templates.flatMap((template, i) =>
    templates.flatMap((sibling, other) => {
      const spelling = avoidingSpelling(template, sibling);
      return spelling === undefined ? [] : [{ i, other, spelling, repeats: repeats(routes[i], routes[other]) }];
    }),
  );
  // The pairs that do the most harm are never among those that are only counted.
  const sorted = [...pairs.filter(({ repeats }) => repeats), ...pairs.filter(({ repeats }) => !repeats)];
  const shown = sorted.slice(0, MAX_PAIRS).map(({ i, other, spelling, repeats }) => {
    const slash = /\/\*?$/.test(routes[other]?.route ?? '') ? ', or without the slash at the end' : '';
    const harm = repeats ? ': a retry with such a path runs a second time' : '';
    const reason = `also matches spellings such as ${spelling}${slash}, which many servers read as routes[${other}]${harm}: set strictSiblings to refuse them`;
    return { path: `routes[${i}].route`, reason };
  });
  const more = sorted.length - shown.length;
  return [
    ...shown,
    ...warnIf(more > 0, 'routes', `${more} more pairs of routes in which one also matches spellings of the other`),
  ];
}

/** Whether the other route remembers the keys of its requests, and this one does not. */
function repeats(route: Config['routes'][number] | undefined, other: Config['routes'][number] | undefined): boolean {
  return Boolean(other?.idempotent) && !route?.idempotent;
}

function certificateWarnings(listener: ListenerName, { tls }: Config['listen']): ConfigIssue[] {
  if (tls === undefined) return [];
  const { fromMs, untilMs } = validityOf(tls.cert);
  const path = `${listener}.tls.cert`;
  return [
    ...warnIf(Date.now() > untilMs, path, `the certificate expired at ${timeOf(untilMs)}, so clients refuse it`),
    ...warnIf(Date.now() < fromMs, path, `the certificate is not valid before ${timeOf(fromMs)}, so clients refuse it`),
  ];
}

function timeOf(ms: number): string {
  return new Date(ms).toISOString();
}

function warnIf(isSo: boolean, path: string, reason: string): ConfigIssue[] {
  return isSo ? [{ path, reason }] : [];
}
