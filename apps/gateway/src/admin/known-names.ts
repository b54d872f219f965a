import { describe } from 'headgate/internal';
import type { AdjustTarget } from 'headgate/limits';
import { recommendedLimits } from 'headgate/recommended';
import type { LimitChange } from 'headgate/shared-limits';
import type { Accounts } from '../admission/accounts.ts';
import { InputError } from '../api/input.ts';
import { getOrCreate } from '../base/get-or-create.ts';
import { countsFor, isLimited } from '../config/account-source.ts';
import type { ConfigIssue } from '../config/config-error.ts';
import type { Config } from '../config/schema.ts';
import { didYouMean } from '../config/suggest.ts';
import type { AdminContext } from './context.ts';

/**
 * Refuses the limit of a name that is missing in the config, or of a route that does not count: it would never apply. A provider with a recommendation is
 * known. A reset is not refused, since the name may have been removed from the config.
 * @throws InputError
 */
export function refuseUnknownNames(
  { config, accounts }: Pick<AdminContext, 'config' | 'accounts'>,
  changes: readonly LimitChange[],
): void {
  const known = new Map<string, ReadonlySet<string>>();
  const namesOf = (field: keyof AdjustTarget) => getOrCreate(known, field, () => namesIn(config(), accounts(), field));
  // The accounts of a config can be very many, so their names are listed only for a suggestion.
  const isKnown = (field: keyof AdjustTarget, name: string) =>
    field === 'account' ? accounts().find(name)?.id === name : namesOf(field).has(name);
  const issues = changes.flatMap(({ target, windows }, i): ConfigIssue[] => {
    if (windows === 'recommended') return [];
    const place = (field: string) => (changes.length === 1 ? field : `changes[${i}].target.${field}`);
    const unknown = (Object.entries(target) as [keyof AdjustTarget, string][]).flatMap(([field, name]) => {
      if (isKnown(field, name)) return [];
      const reason = `the config has no such ${field}: ${describe(name)}${didYouMean(name, [...namesOf(field)])}`;
      return [{ path: place(field), reason }];
    });
    const route = config().routes.find((each) => each.route === target.route);
    if (unknown.length > 0 || route === undefined) return unknown;
    const applies = target.account === undefined ? isLimited(route) : countsFor(route, target.account);
    return applies
      ? []
      : [{ path: place('route'), reason: 'the route does not count by such an account, so this would never apply' }];
  });
  if (issues.length > 0) throw new InputError(issues);
}

function namesIn(
  { accounts, providers, limits, routes }: Config,
  { all }: Accounts,
  field: keyof AdjustTarget,
): ReadonlySet<string> {
  switch (field) {
    case 'account':
      return new Set(all.map(({ id }) => id));
    case 'provider':
      return new Set([
        ...accounts.flatMap(({ provider }) => provider ?? []),
        ...[...Object.keys(providers), ...Object.keys(limits.providers), ...Object.keys(recommendedLimits)],
      ]);
    case 'plan':
      return new Set(Object.keys(limits.plans));
    case 'route':
      return new Set(routes.map(({ route }) => route));
  }
}
