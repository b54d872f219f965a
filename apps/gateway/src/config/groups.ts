import type { Groups } from 'headgate/limits';
import { groupAccount } from 'headgate/limits';
import { type ConfigIssue, formatPath, issueIf } from './config-error.ts';
import { arrayOrEmpty, type JsonObject, objectOrEmpty } from './json.ts';
import { rejects } from './limits.ts';
import { upstreamSettings } from './schema/upstream.ts';
import type { Account, Config } from './schema.ts';
import { didYouMean } from './suggest.ts';

/** As many as one request may name. */
const MAX_GROUPS = 4;

/** What can put its requests into groups. */
interface Member {
  readonly groups?: Groups | undefined;
}

/**
 * The groups of a request. Of two ids of one group the account's wins, then the key's, then the route's. Undefined without
 * groups, which is usual.
 */
export function groupsOf(
  route: Member | undefined,
  key: Member | undefined,
  account: Member | undefined,
): Groups | undefined {
  if (route?.groups === undefined && key?.groups === undefined) return account?.groups;
  return { ...route?.groups, ...key?.groups, ...account?.groups };
}

/** The group that a cooldown of the scope `provider` pauses (S30). */
const PROVIDER = 'provider';
const NO_PROVIDER_GROUP =
  'needs limits.groups.provider with a limit of all methods, such as { "allMethods": { "windows": ["1000/1m"], "scope": "account" } }';

/** The same config, in which the provider of an account is its group `provider`, unless the account names another one. */
export function withProviderGroups(config: Config): Config {
  if (!Object.hasOwn(config.limits.groups, PROVIDER)) return config;
  return {
    ...config,
    accounts: config.accounts.map((account) =>
      account.provider === undefined
        ? account
        : { ...account, groups: { [PROVIDER]: account.provider, ...account.groups } },
    ),
  };
}

/** Cooldowns that would pause nothing, because a block rejects only requests that a limit counts. */
export function providerGroupIssues({ upstream, upstreams, limits }: Config): ConfigIssue[] {
  if (Object.hasOwn(limits.groups, PROVIDER) && rejects(limits.groups[PROVIDER]?.allMethods)) return [];
  const all = [
    [['upstream'], upstream] as const,
    ...Object.entries(upstreams).map(([name, given]) => [['upstreams', name], given] as const),
  ];
  return all.flatMap(([path, given]) => {
    const { cooldown } = upstreamSettings(given);
    const isOfProvider = cooldown !== false && cooldown.scope === PROVIDER;
    return issueIf(formatPath([...path, 'cooldown', 'scope']), isOfProvider ? NO_PROVIDER_GROUP : undefined);
  });
}

/** The accounts of all groups that routes, keys and accounts name. Any application may use them. */
export function groupAccountsIn({
  accounts,
  keys,
  routes,
}: Pick<Config, 'accounts' | 'keys' | 'routes'>): readonly Account[] {
  const ids = [...accounts, ...keys, ...routes].flatMap(({ groups = {} }) =>
    Object.entries(groups).map(([name, id]) => groupAccount(name, id)),
  );
  return [...new Set(ids)].map((id) => ({ id, application: '', scope: null }));
}

/** Each request of such a route, key or account would get a 500. No reason shows a group of a key: it may be a token. */
export function groupIssues(file: JsonObject): ConfigIssue[] {
  const known = Object.keys(objectOrEmpty(objectOrEmpty(file.limits).groups));
  const unknown = (list: 'accounts' | 'routes' | 'keys'): ConfigIssue[] =>
    arrayOrEmpty(file[list]).flatMap((each, index) =>
      Object.keys(objectOrEmpty(objectOrEmpty(each).groups))
        .filter((name) => !known.includes(name))
        .map((name) => ({
          path: formatPath(list === 'keys' ? [list, index, 'groups'] : [list, index, 'groups', name]),
          reason: list === 'keys' ? `limits.groups has no such group${listed(known)}` : noGroup(name, known),
        })),
    );
  return [
    ...groupNameIssues('limits', objectOrEmpty(file.limits)),
    ...unknown('accounts'),
    ...unknown('keys'),
    ...unknown('routes'),
  ];
}

const listed = (known: readonly string[]): string => (known.length === 0 ? '' : `: ${known.join(', ')}`);
const noGroup = (name: string, known: readonly string[]): string =>
  `limits.groups has no ${JSON.stringify(name)}${didYouMean(name, known)}`;

/** @param place `limits` or `shadow.limits` */
export function groupNameIssues(place: string, { groups }: JsonObject): ConfigIssue[] {
  const names = Object.keys(objectOrEmpty(groups));
  return [
    ...issueIf(`${place}.groups`, names.length > MAX_GROUPS ? `must have at most ${MAX_GROUPS} groups` : undefined),
    ...names.flatMap((name) => issueIf(formatPath([...place.split('.'), 'groups', name]), nameFlaw(name))),
  ];
}

function nameFlaw(name: string): string | undefined {
  try {
    groupAccount(name, '');
    return undefined;
  } catch (error) {
    return /^name: (.*), got /s.exec((error as Error).message)?.[1];
  }
}

/** Groups in which no request is. */
export function groupWarnings({ limits, accounts, keys, routes }: Config): ConfigIssue[] {
  const used = new Set([...accounts, ...keys, ...routes].flatMap(({ groups = {} }) => Object.keys(groups)));
  return Object.keys(limits.groups)
    .filter((name) => !used.has(name))
    .map((name) => ({
      path: formatPath(['limits', 'groups', name]),
      reason: 'no account, no key and no route names this group, so it never applies',
    }));
}
