import { faultOfCost } from 'headgate/internal';
import { groupAccount } from 'headgate/limits';
import { createMemoryStore } from 'headgate/memory';
import { isLimited, isNamed } from './account-source.ts';
import { type ConfigIssue, formatPath } from './config-error.ts';
import { limiterOf } from './limits.ts';
import type { Config } from './schema.ts';

/** Routes whose cost names no unit that a group of their requests counts (S33): each such request gets a 500. */
export function uncountedCosts(config: Config): ConfigIssue[] {
  const { limits, accounts, keys, routes } = config;
  const names = Object.keys(limits.groups);
  if (names.length === 0) return [];
  const limiter = limiterOf(config, createMemoryStore({ maxKeys: 1 }));
  const has = (name: string) => (member: { readonly groups?: object | undefined }) =>
    member.groups !== undefined && Object.hasOwn(member.groups, name);
  return names.flatMap((name) => {
    const isOfKeys = keys.some(has(name));
    const isOfAccounts = accounts.some(has(name));
    return routes.flatMap((of, index) => {
      if (!isLimited(of) || !(isOfKeys || has(name)(of) || (isOfAccounts && isNamed(of)))) return [];
      const fault = faultOfCost(limiter, { account: groupAccount(name, ''), route: of.route }, of.cost ?? 1);
      if (fault === undefined) return [];
      const reason = `no window of limits.groups.${name} counts what a request costs, so each request of this group gets a 500: ${fault}`;
      return [{ path: formatPath(['routes', index]), reason }];
    });
  });
}
