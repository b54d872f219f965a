import { describe } from 'headgate/internal';
import { parametersOf, shapeOf } from 'headgate-simulate/routes';
import { consumerOf, HEADER_NAME, NO_ACCOUNT, unusableSource } from './account-source.ts';
import { clientAddressIssues, perAddressIssues } from './address-checks.ts';
import { adminIssues } from './admin-checks.ts';
import { type ConfigIssue, formatPath, issueIf } from './config-error.ts';
import { corsIssues } from './cors-checks.ts';
import { costIssues } from './cost-checks.ts';
import { groupIssues } from './groups.ts';
import { arrayOrEmpty, isObject, type JsonObject, objectOrEmpty } from './json.ts';
import { laneIssues } from './lanes.ts';
import { limitIssues, namesIn, shadowIssues } from './limit-checks.ts';
import { descriptorIssues, exposedServiceIssues } from './rate-limit-service-checks.ts';
import { isOwnField } from './request-fields.ts';
import { parseRoute } from './routes.ts';
import { storeIssues } from './store-checks.ts';
import { didYouMean } from './suggest.ts';
import { tokenIssues } from './token-checks.ts';
import { DEFAULT_UPSTREAM } from './upstreams.ts';

const RESERVED = `${DEFAULT_UPSTREAM} is the name of the config's upstream: choose another one`;
const NO_KEY = 'a public route has no API key that may reach an account: use "address" or "none"';
const NO_OWNER = 'must not be given for a public route, because without an API key nobody owns an idempotency key';

/**
 * Checks that need more than one value, such as names that must be unique or must exist elsewhere in the file, and
 * texts with a special format. Works on the raw file, so that these issues are listed even if other issues spoil its
 * shape.
 */
export function crossChecks(file: JsonObject): ConfigIssue[] {
  return [
    ...keyIssues(file),
    ...adminIssues(file),
    ...clientAddressIssues(objectOrEmpty(file.clientAddress)),
    ...perAddressIssues(file),
    ...accountIssues(arrayOrEmpty(file.accounts), plansIn(file)),
    ...routeIssues(arrayOrEmpty(file.routes)),
    ...groupIssues(file),
    ...laneIssues(file),
    ...costIssues(file),
    ...limitIssues('limits', objectOrEmpty(file.limits), namesIn(file)),
    ...(isObject(file.shadow) ? shadowIssues(objectOrEmpty(file.shadow), file) : []),
    ...upstreamFlaws('upstream', file.upstream),
    ...upstreamIssues(file),
    ...corsIssues(objectOrEmpty(file.cors)),
    ...arrayOrEmpty(file.forwardFields).flatMap((name, i) => issueIf(`forwardFields[${i}]`, forwardFieldFlaw(name))),
    ...issueIf('idempotency.secret', fingerprintSecretFlaw(file)),
    ...storeIssues(file.store),
    ...issueIf('workers', workersFlaw(file)),
    ...sameAddressIssues(file),
    ...exposedServiceIssues(file),
    ...descriptorIssues(file),
  ];
}

function plansIn({ limits }: JsonObject): string[] {
  return Object.keys(objectOrEmpty(objectOrEmpty(limits).plans));
}

function keyIssues(file: JsonObject): ConfigIssue[] {
  const keys = arrayOrEmpty(file.keys);
  const issues = [
    ...tokenIssues(keys, 'keys', 'key', new Map()),
    ...repeated(keys.map((key) => objectOrEmpty(key).name)).map(([index, first]) => ({
      path: `keys[${index}].name`,
      reason: `is also the name of keys[${first}]`,
    })),
    ...planIssues(keys, file),
  ];
  for (const [index, key] of keys.entries()) {
    const { role, scope } = objectOrEmpty(key);
    const path = `keys[${index}].scope`;
    const hasScope = scope !== undefined && scope !== null;
    if (role === 'scoped' && !hasScope) issues.push({ path, reason: 'a scoped key needs a scope' });
    // If it were silently ignored, it would look like a restriction that does not exist.
    if (isObject(key) && role !== 'scoped' && hasScope)
      issues.push({ path, reason: 'only a key with the role "scoped" has a scope' });
  }
  return issues;
}

/** No reason shows the plan, because a value of a key may be a token in the wrong place. */
function planIssues(keys: readonly unknown[], file: JsonObject): ConfigIssue[] {
  const plans = plansIn(file);
  const countsApplications = arrayOrEmpty(file.routes).some((route) => objectOrEmpty(route).account === 'application');
  const first = new Map<unknown, number>();
  return keys.flatMap((key, index) => {
    const { application, plan } = objectOrEmpty(key);
    const path = `keys[${index}].plan`;
    const before = first.get(application) ?? index;
    first.set(application, before);
    if (typeof plan === 'string' && plan !== '' && !plans.includes(plan))
      return [{ path, reason: `limits.plans has no such plan${plans.length === 0 ? '' : `: ${plans.join(', ')}`}` }];
    const isSame = plan === objectOrEmpty(keys[before]).plan;
    const reason = `must be that of keys[${before}], of the same application, because a route counts by application`;
    return issueIf(path, countsApplications && !isSame ? reason : undefined);
  });
}

/** @param plans the names that the limits of the file list */
function accountIssues(accounts: readonly unknown[], plans: readonly string[]): ConfigIssue[] {
  const ids = accounts.map((account) => objectOrEmpty(account).id);
  return [
    ...ids.flatMap((id, index) => {
      const consumer = typeof id === 'string' ? consumerOf(id)?.consumer : undefined;
      const owners = consumer === 'group' ? 'groups' : `what "account": "${consumer}" counts`;
      const reason = `must not begin with ${consumer}:, because such ids are of ${owners}`;
      return issueIf(`accounts[${index}].id`, consumer === undefined ? undefined : reason);
    }),
    ...repeated(ids).map(([index, first]) => ({
      path: `accounts[${index}].id`,
      reason: `${describe(ids[index])} is also the id of accounts[${first}]`,
    })),
    // Each request for the account would get a 500.
    ...accounts.flatMap((account, index) => {
      const { plan } = objectOrEmpty(account);
      if (typeof plan !== 'string' || plan === '' || plans.includes(plan)) return [];
      return [
        { path: `accounts[${index}].plan`, reason: `limits.plans has no ${describe(plan)}${didYouMean(plan, plans)}` },
      ];
    }),
  ];
}

function routeIssues(routes: readonly unknown[]): ConfigIssue[] {
  const issues: ConfigIssue[] = [];
  const shapes = routes.map((value, index) => {
    const { route, account, public: isPublic, idempotent = false } = objectOrEmpty(value);
    if (typeof route !== 'string') return undefined;
    const template = parseRoute(route);
    if ('reason' in template) {
      issues.push({ path: `routes[${index}].route`, reason: template.reason });
      return undefined;
    }
    const [, check] = /^(?:GET|HEAD) (\/(?:healthz|livez|readyz))$/.exec(route) ?? [];
    if (check !== undefined) {
      issues.push({ path: `routes[${index}].route`, reason: `the gateway itself answers ${check}` });
    }
    const reason = typeof account === 'string' ? unusableSource(account, parametersOf(template.segments)) : undefined;
    issues.push(...issueIf(`routes[${index}].account`, reason));
    if (isPublic === true && typeof account === 'string' && account !== 'address' && account !== NO_ACCOUNT)
      issues.push({ path: `routes[${index}].account`, reason: NO_KEY });
    if (isPublic === true && idempotent !== false)
      issues.push({ path: `routes[${index}].idempotent`, reason: NO_OWNER });
    return shapeOf(template);
  });
  for (const [index, first] of repeated(shapes)) {
    issues.push({ path: `routes[${index}].route`, reason: `matches the same requests as routes[${first}]` });
  }
  return issues;
}

function upstreamIssues({ upstreams, routes, providers }: JsonObject): ConfigIssue[] {
  const urls = objectOrEmpty(upstreams);
  const known = [DEFAULT_UPSTREAM, ...Object.keys(urls)];
  const flawOf = (name: unknown): string | undefined =>
    typeof name !== 'string' || name === '' || known.includes(name)
      ? undefined
      : `upstreams has no ${describe(name)}${didYouMean(name, known)}`;
  return [
    ...Object.entries(urls).flatMap(([name, url]) =>
      name === DEFAULT_UPSTREAM
        ? issueIf(formatPath(['upstreams', name]), RESERVED)
        : upstreamFlaws(formatPath(['upstreams', name]), url),
    ),
    ...arrayOrEmpty(routes).flatMap((route, i) =>
      issueIf(`routes[${i}].upstream`, flawOf(objectOrEmpty(route).upstream)),
    ),
    ...Object.entries(objectOrEmpty(providers)).flatMap(([name, provider]) =>
      issueIf(formatPath(['providers', name, 'upstream']), flawOf(objectOrEmpty(provider).upstream)),
    ),
  ];
}

function upstreamFlaws(path: string, upstream: unknown): ConfigIssue[] {
  return typeof upstream === 'string'
    ? issueIf(path, upstreamFlaw(upstream))
    : issueIf(`${path}.url`, upstreamFlaw(objectOrEmpty(upstream).url));
}

function upstreamFlaw(upstream: unknown): string | undefined {
  if (typeof upstream !== 'string') return undefined;
  const url = URL.canParse(upstream) ? new URL(upstream) : undefined;
  // A value with one of these characters may contain a password or a token.
  const given = /[@?#]/.test(upstream) ? '' : `, got ${describe(upstream)}`;
  if (url === undefined || !/^https?:\/\//i.test(upstream)) return `must be a URL with http:// or https://${given}`;
  if (/[?#]/.test(upstream)) return 'must have neither a query nor a fragment';
  return url.username === '' && url.password === '' ? undefined : 'must not have a user name or password in it';
}

function forwardFieldFlaw(name: unknown): string | undefined {
  if (typeof name !== 'string') return undefined;
  if (!HEADER_NAME.test(name)) return `${describe(name)} is not a header name`;
  return isOwnField(name.toLowerCase()) ? `the gateway itself sets or removes ${name}` : undefined;
}

/** Without a key, a reader of the store could test guesses of a password. */
function fingerprintSecretFlaw({ idempotency, routes }: JsonObject): string | undefined {
  const { compares, secret } = objectOrEmpty(idempotency);
  const lists = [
    compares,
    ...arrayOrEmpty(routes).map((route) => objectOrEmpty(objectOrEmpty(route).idempotent).compares),
  ];
  if (secret !== undefined || lists.every((list) => arrayOrEmpty(list).length === 0)) return undefined;
  return 'must be given with compares, so that no reader of the store can guess a compared value';
}

/** In memory each worker would count by itself, and would not know the idempotency keys of the others. */
function workersFlaw({ workers = 1, store = 'memory' }: JsonObject): string | undefined {
  if (workers === 1 || store !== 'memory') return undefined;
  return 'several workers need Redis or PostgreSQL as store: in memory each of them would admit the whole of every limit';
}

/** The listeners besides `listen`, with their default ports. */
const LISTENERS = [
  ['admin', 8081],
  ['decisions', 8082],
  ['rateLimitService', 8083],
] as const;

function sameAddressIssues(file: JsonObject): ConfigIssue[] {
  const used = [{ name: 'listen', ...addressOf(file.listen, 8080) }];
  return LISTENERS.flatMap(([name, defaultPort]) => {
    if (file[name] === undefined) return [];
    const own = { name, ...addressOf(file[name], defaultPort) };
    const other = used.find(({ host, port }) => port !== 0 && port === own.port && host === own.host);
    used.push(own);
    return issueIf(`${name}.port`, other && `${describe(own.port)} is also the port of ${other.name}`);
  });
}

function addressOf(listener: unknown, defaultPort: number): { readonly host: unknown; readonly port: unknown } {
  const { host = '127.0.0.1', port = defaultPort } = objectOrEmpty(listener);
  return { host, port };
}

/** Index of each repeated value, with the index of its first appearance. */
function repeated(values: readonly unknown[]): [number, number][] {
  const first = new Map<unknown, number>();
  const repetitions: [number, number][] = [];
  for (const [index, value] of values.entries()) {
    if (value === undefined) continue;
    const before = first.get(value);
    if (before === undefined) first.set(value, index);
    else repetitions.push([index, before]);
  }
  return repetitions;
}
