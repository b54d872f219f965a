import type { AdjustTarget } from '../../core/adjustment.ts';
import { describe } from '../../core/errors.ts';
import { recommendedLimits } from '../../limits/recommended.ts';
import type { LimitChange } from '../../limits/shared/change.ts';
import type { ConfigIssue } from '../config/config-error.ts';
import type { Config } from '../config/schema.ts';
import { didYouMean } from '../config/suggest.ts';
import { InputError } from './input.ts';

/**
 * Refuses the limit of a name that the config does not have: it would never apply. A provider with a recommendation is
 * known. A reset is not refused, since the name may have been removed from the config.
 * @throws InputError
 */
export function refuseUnknownNames(config: Config, changes: readonly LimitChange[]): void {
  const issues = changes.flatMap(({ target, windows }, i): ConfigIssue[] => {
    if (windows === 'recommended') return [];
    return (Object.entries(target) as [keyof AdjustTarget, string][]).flatMap(([field, name]) => {
      const known = namesIn(config, field);
      if (known.has(name)) return [];
      const reason = `the config has no such ${field}: ${describe(name)}${didYouMean(name, [...known])}`;
      return [{ path: changes.length === 1 ? field : `changes[${i}].target.${field}`, reason }];
    });
  });
  if (issues.length > 0) throw new InputError(issues);
}

function namesIn({ accounts, providers, limits, routes }: Config, field: keyof AdjustTarget): ReadonlySet<string> {
  switch (field) {
    case 'account':
      return new Set(accounts.map(({ id }) => id));
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
