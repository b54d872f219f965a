import { parseLimit } from '../../core/limit.ts';
import { HEADER_NAME, isForbiddenAccountHeader } from '../admission/account-source.ts';
import { type Fault, formatPath } from './config-error.ts';
import { list, type Raw, record } from './raw.ts';
import { parametersOf, parseRoute, type RouteTemplate, shapeOf } from './route-template.ts';
import { parseStoreUrl } from './store-url.ts';

/**
 * What one value alone cannot show: names that must be unique, or must exist elsewhere in the file.
 * Works on the raw file, so that these faults are listed even where others spoil the shape.
 */
export function crossChecks(file: Raw): Fault[] {
  return [
    ...keyFaults(list(file.keys)),
    ...accountFaults(list(file.accounts)),
    ...routeFaults(list(file.routes)),
    ...limitFaults(record(file.limits), idsOf(file), routesOf(file)),
    ...upstreamFaults(file.upstream),
    ...storeFaults(file.store),
    ...sameAddress(record(file.listen), file.admin === undefined ? undefined : record(file.admin)),
  ];
}

/** Not echoed: such a URL may hold a password. */
function storeFaults(store: unknown): Fault[] {
  if (typeof store !== 'string' || parseStoreUrl(store) !== undefined) return [];
  return [
    {
      path: 'store',
      reason: 'must be memory, redis://[user:password@]host:port/db, rediss://… or redis-cluster://host:port,host:port',
    },
  ];
}

function keyFaults(keys: readonly unknown[]): Fault[] {
  const faults: Fault[] = [];
  const seen = new Map<string, number>();
  for (const [index, raw] of keys.entries()) {
    const { sha256, token, role, scope } = record(raw);
    const path = `keys[${index}]`;
    if ((sha256 === undefined) === (token === undefined)) {
      faults.push({ path, reason: 'needs exactly one of sha256 and token' });
    }
    const scoped = scope !== undefined && scope !== null;
    if (role === 'scoped' && !scoped) faults.push({ path: `${path}.scope`, reason: 'a scoped key needs a scope' });
    // Silently ignored, it would look like a restriction that does not exist.
    if (role !== 'scoped' && scoped) {
      faults.push({ path: `${path}.scope`, reason: 'only a key with the role "scoped" has a scope' });
    }
    const secret = typeof sha256 === 'string' ? `sha256 ${sha256.toLowerCase()}` : `token ${String(token)}`;
    const before = seen.get(secret);
    if (before !== undefined && (sha256 ?? token) !== undefined)
      faults.push({ path, reason: `is keys[${before}] again` });
    else seen.set(secret, index);
  }
  return faults;
}

function accountFaults(accounts: readonly unknown[]): Fault[] {
  return repeated(accounts.map((account) => record(account).id)).map(([index, first]) => ({
    path: `accounts[${index}].id`,
    reason: `is the id of accounts[${first}] too`,
  }));
}

function routeFaults(routes: readonly unknown[]): Fault[] {
  const faults: Fault[] = [];
  const templates = routes.map((raw, index) => {
    const { route, account } = record(raw);
    if (typeof route !== 'string') return undefined;
    const template = parseRoute(route);
    if ('reason' in template) {
      faults.push({ path: `routes[${index}].route`, reason: template.reason });
      return undefined;
    }
    if (/^(GET|HEAD) \/healthz$/.test(route)) {
      faults.push({ path: `routes[${index}].route`, reason: "/healthz is the gateway's own" });
    }
    const reason = typeof account === 'string' ? sourceFault(account, template) : undefined;
    if (reason !== undefined) faults.push({ path: `routes[${index}].account`, reason });
    return shapeOf(template);
  });
  for (const [index, first] of repeated(templates)) {
    faults.push({ path: `routes[${index}].route`, reason: `matches the same requests as routes[${first}]` });
  }
  return faults;
}

function sourceFault(source: string, template: RouteTemplate): string | undefined {
  const name = source.slice(source.indexOf('.') + 1);
  if (source.startsWith('path.') && !parametersOf(template).includes(name))
    return `the route has no parameter {${name}}`;
  if (!source.startsWith('header.')) return undefined;
  if (!HEADER_NAME.test(name)) return `${JSON.stringify(name)} is no header name`;
  return isForbiddenAccountHeader(name) ? `the header ${name} cannot name an account` : undefined;
}

function limitFaults(limits: Raw, accounts: ReadonlySet<unknown>, routes: ReadonlySet<unknown>): Fault[] {
  const layers = [
    [['limits', 'default'], limits.default] as const,
    ...Object.entries(record(limits.providers)).map(([name, layer]) => [['limits', 'providers', name], layer] as const),
    ...Object.entries(record(limits.accounts)).map(([name, layer]) => [['limits', 'accounts', name], layer] as const),
  ];
  const unknown = Object.keys(record(limits.accounts)).filter((account) => !accounts.has(account));
  return [
    ...unknown.map((account) => ({
      path: formatPath(['limits', 'accounts', account]),
      reason: 'the file has no such account',
    })),
    ...layers.flatMap(([path, layer]) => layerFaults(path, record(layer), routes)),
  ];
}

function layerFaults(path: readonly string[], layer: Raw, routes: ReadonlySet<unknown>): Fault[] {
  const { allMethods } = layer;
  const faults = Array.isArray(allMethods)
    ? distinctDurations([...path, 'allMethods'], allMethods)
    : distinctDurations([...path, 'allMethods', 'windows'], record(allMethods).windows);
  for (const [route, limit] of Object.entries(record(layer.routes))) {
    const place = [...path, 'routes', route];
    if (!routes.has(route)) faults.push({ path: formatPath(place), reason: 'the file has no such route' });
    faults.push(...distinctDurations(place, limit));
  }
  return faults;
}

/** Of a limit whose windows are each in order; the others have faults of their own. */
function distinctDurations(path: readonly string[], limit: unknown): Fault[] {
  try {
    if (Array.isArray(limit)) parseLimit(limit, 'limit');
    return [];
  } catch (error) {
    const reason = /^limit: (.*)$/s.exec((error as Error).message)?.[1];
    return reason === undefined ? [] : [{ path: formatPath(path), reason }];
  }
}

function upstreamFaults(upstream: unknown): Fault[] {
  if (typeof upstream !== 'string') return [];
  const reason = upstreamFault(upstream);
  return reason === undefined ? [] : [{ path: 'upstream', reason }];
}

function upstreamFault(text: string): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:\/\//i.test(text)) return 'must be a URL with http:// or https://';
  if (text.includes('?') || text.includes('#')) return 'must have neither a query nor a fragment';
  return url.username === '' && url.password === '' ? undefined : 'must not have a user name or password in it';
}

function sameAddress(listen: Raw, admin: Raw | undefined): Fault[] {
  if (admin === undefined) return [];
  const { host = '127.0.0.1', port = 8080 } = listen;
  const other = { host: '127.0.0.1', port: 8081, ...admin };
  if (port === 0 || other.port !== port || other.host !== host) return [];
  return [{ path: 'admin.port', reason: 'is the port of listen too' }];
}

function idsOf(file: Raw): Set<unknown> {
  return new Set(list(file.accounts).map((account) => record(account).id));
}

function routesOf(file: Raw): Set<unknown> {
  return new Set(list(file.routes).map((route) => record(route).route));
}

/** Index of each value that stood before, with the index where it stood first. */
function repeated(values: readonly unknown[]): [number, number][] {
  const first = new Map<unknown, number>();
  const found: [number, number][] = [];
  for (const [index, value] of values.entries()) {
    if (value === undefined) continue;
    const before = first.get(value);
    if (before === undefined) first.set(value, index);
    else found.push([index, before]);
  }
  return found;
}
