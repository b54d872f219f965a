import type { LayeredLimits, LimitSet } from 'headgate/limits';
import { recommendedLimits } from 'headgate/recommended';
import { CONSUMERS, consumerOf, countsFor, isLimited } from './account-source.ts';
import type { ConfigIssue } from './config-error.ts';
import { accountsIn } from './consumers.ts';
import { hasWindows, limitsOf, rejects } from './limits.ts';
import type { Account, Config } from './schema.ts';
import { didYouMean } from './suggest.ts';

/** Most lines per kind of account. Each names the accounts that lack limits on the same routes. */
const MAX_LINES = 3;
/** Most names in a list. */
const MAX_NAMES = 3;
const MEANT = 'if this is meant, write "account": "none" for the route';
const MEANT_HERE = `${MEANT}, or "allMethods": [] for the account or its plan`;

/** Who has no limit, and on which routes. */
interface Group {
  readonly accounts: Account[];
  readonly routes: readonly string[];
}

/**
 * Accounts whose requests to a limited route meet no window at all. A few lines, however many accounts and routes there
 * are. `[]` in the limits of a plan, a provider or an account says that this is meant.
 */
export function unlimitedRequests(config: Config): ConfigIssue[] {
  const { limits } = config;
  const layers = limitsOf(config);
  // Windows of the default for all methods are lifted only by a layer that says so.
  if (!hasWindows(limits) || hasAllMethods(layers.default)) return [];
  const accounts = accountsIn(config);
  const kinds = [
    { noun: 'account', accounts: accounts.filter(({ id }) => consumerOf(id) === undefined) },
    ...CONSUMERS.map((consumer) => ({
      noun: consumer,
      accounts:
        consumer === 'address' ? [ANY_ADDRESS] : accounts.filter(({ id }) => consumerOf(id)?.consumer === consumer),
    })),
  ];
  return kinds.flatMap((kind) => linesOf(kind.noun, groupsOf(kind.accounts, layers, config), kind.accounts, limits));
}

/** Addresses cannot be listed. No layer of an account is about this one. */
const ANY_ADDRESS: Account = { id: 'address:', application: '', scope: null };

/** Accounts by the routes on which nothing limits them. Accounts without a layer of their own share the work. */
function groupsOf(accounts: readonly Account[], layers: LayeredLimits, config: Config): Group[] {
  const byClass = new Map<string, readonly string[]>();
  const groups = new Map<string, Group>();
  for (const account of accounts) {
    const { id, provider, plan } = account;
    const own = layers.accounts?.[id];
    const of = JSON.stringify([consumerOf(id)?.consumer, provider, plan, own && id]);
    let routes = byClass.get(of);
    if (routes === undefined) {
      const specific = [own, layers.providers?.[provider ?? ''], layers.plans?.[plan ?? '']];
      routes = config.routes
        .filter((route) => isLimited(route) && countsFor(route, id))
        .filter(({ route }) => isOverlooked(route, specific, layers.default))
        .map(({ route }) => route);
      byClass.set(of, routes);
    }
    if (routes.length === 0) continue;
    const key = routes.join('\n');
    const group = groups.get(key);
    if (group === undefined) groups.set(key, { accounts: [account], routes });
    else group.accounts.push(account);
  }
  return [...groups.values()];
}

/** Whether no layer limits the route, or says that it is not limited. */
function isOverlooked(route: string, specific: readonly (LimitSet | undefined)[], common: LimitSet = {}): boolean {
  if (specific.some((layer) => layer?.allMethods !== undefined)) return false;
  const limit = specific.map((layer) => layer?.routes?.[route]).find((given) => given !== undefined);
  return limit === undefined && !rejects(common.routes?.[route]);
}

function hasAllMethods({ allMethods }: LimitSet = {}): boolean {
  return rejects(allMethods);
}

function linesOf(
  noun: string,
  groups: readonly Group[],
  all: readonly Account[],
  limits: Config['limits'],
): ConfigIssue[] {
  const path = 'limits.default.allMethods';
  const lines = groups.slice(0, MAX_LINES).map(({ accounts, routes }) => {
    const who =
      accounts.length === all.length ? `every ${noun}` : `${noun} ${listOf(accounts.map(({ id }) => nameIn(id)))}`;
    const meant = noun === 'address' ? MEANT : MEANT_HERE;
    const hint = limits.recommended ? recommendationFor(accounts[0] as Account) : '';
    return `requests of ${who} to ${listOf(routes)} are not limited${hint}: add windows here, such as ["60/1m"]; ${meant}`;
  });
  const more = groups.slice(MAX_LINES).reduce((sum, { accounts }) => sum + accounts.length, 0);
  if (more > 0) lines.push(`requests of ${more} more (${noun}) to some of their routes are not limited either`);
  return lines.map((reason) => ({ path, reason }));
}

/** With `recommended`, a config needs no other limit, so a provider without a recommendation is easily overlooked. */
function recommendationFor({ provider = '' }: Account): string {
  const known = Object.keys(recommendedLimits);
  return ` (none is recommended for the provider ${JSON.stringify(provider)}${didYouMean(provider, known, `; known: ${known.join(', ')}`)})`;
}

function nameIn(id: string): string {
  return consumerOf(id)?.name ?? id;
}

function listOf(names: readonly string[]): string {
  const rest = names.length - MAX_NAMES;
  return `${names.slice(0, MAX_NAMES).join(', ')}${rest > 0 ? ` and ${rest} more` : ''}`;
}
