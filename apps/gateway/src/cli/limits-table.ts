import type { Limiter } from 'headgate';
import { formatWindow, parseLimit } from 'headgate';
import { groupAccount } from 'headgate/limits';
import { createMemoryStore } from 'headgate/memory';
import { aligned, printable } from '../base/table.ts';
import { countsFor, isLimited, isNamed } from '../config/account-source.ts';
import { accountsIn } from '../config/consumers.ts';
import { limiterOf, limitsOf } from '../config/limits.ts';
import type { Config } from '../config/schema.ts';

/** No account of a config uses this id, because ids are not empty. */
const NO_ACCOUNT = '';
const NONE = '-';

/**
 * The effective limits of a config: per provider and route, then per plan, then per group, then per account with its own
 * limits, then per address. Those of a route with a lane are the share of the lane. Ends with a line break.
 */
export function limitsTable(config: Config): string {
  const limiter = limiterOf(config, createMemoryStore({ maxKeys: 1 }));
  const layers = limitsOf(config);
  const named = new Set(Object.keys(layers.providers ?? {}));
  for (const { provider } of config.accounts) if (provider !== undefined) named.add(provider);
  const subjects: Subject[] = [
    ...[...named]
      .sort()
      .map((provider) => ({ label: printable(provider), account: NO_ACCOUNT, provider, has: isNamed })),
    { label: '(any other)', account: NO_ACCOUNT, has: isLimited },
  ];
  const plans: Subject[] = Object.keys(layers.plans ?? {})
    .sort()
    .map((plan) => ({
      label: printable(plan),
      account: NO_ACCOUNT,
      plan,
      has: ({ account }) => account !== 'address',
    }));
  const groups: Subject[] = Object.keys(layers.groups ?? {}).map((group) => {
    const names = ({ groups }: { readonly groups?: object | undefined }) => Object.hasOwn(groups ?? {}, group);
    const isOfAll = [...config.accounts, ...config.keys].some(names);
    return { label: group, account: groupAccount(group, NO_ACCOUNT), has: (route) => isOfAll || names(route) };
  });
  const overridden = new Set(Object.keys(layers.accounts ?? {}));
  const special: Subject[] = accountsIn(config)
    .filter(({ id }) => overridden.has(id))
    .map(({ id, provider, plan }) => ({
      label: printable(id),
      account: id,
      provider,
      plan,
      has: (route) => countsFor(route, id),
    }));
  const tables = [aligned(rows('PROVIDER', subjects, config, limiter))];
  if (plans.length > 0) tables.push(aligned(rows('PLAN', plans, config, limiter)));
  if (groups.length > 0) tables.push(aligned(rows('GROUP', groups, config, limiter)));
  if (special.length > 0) tables.push(aligned(rows('ACCOUNT', special, config, limiter)));
  if (config.perAddress !== undefined) {
    const { windows, perNetwork } = config.perAddress;
    const ofNetwork = perNetwork === undefined ? '16 times as much' : textOf(parseLimit(perNetwork));
    tables.push(
      aligned([
        ['PER ADDRESS', 'PER IPV6 /48'],
        [textOf(parseLimit(windows)), ofNetwork],
      ]),
    );
  }
  return tables.join('\n');
}

interface Subject {
  readonly label: string;
  readonly account: string;
  /** Whether it can be the account of a request for this limited route. */
  readonly has: (route: Config['routes'][number]) => boolean;
  readonly provider?: string | undefined;
  readonly plan?: string | undefined;
}

function rows(title: string, subjects: readonly Subject[], config: Config, limiter: Limiter): string[][] {
  const body = subjects.flatMap(({ label, account, provider, plan, has }) =>
    config.routes.flatMap((of) => {
      const { route, lane } = of;
      if (!isLimited(of)) return [[label, route, 'not limited (no account)', '']];
      if (!has(of)) return [];
      const { windows, allMethodsScope, inFlight } = limiter.windowSet({ account, route, provider, plan, lane });
      if (windows.length === 0 && inFlight === undefined) return [[label, route, 'not limited', '']];
      const ofRoute = textOf(windows.filter(({ limit }) => limit === 'route'));
      const ofAll = textOf(windows.filter(({ limit }) => limit === 'all-methods'));
      const isShared = ofAll !== NONE && allMethodsScope === 'account';
      return [
        [
          label,
          route,
          withInFlight(ofRoute, inFlight?.route),
          withInFlight(isShared ? `${ofAll} (shared by routes)` : ofAll, inFlight?.allMethods),
        ],
      ];
    }),
  );
  return [[title, 'ROUTE', 'ROUTE LIMIT', 'ALL METHODS'], ...body];
}

/** `60/1m, 10 in flight` */
function withInFlight(windows: string, max: number | undefined): string {
  if (max === undefined) return windows;
  return windows === NONE ? `${max} in flight` : `${windows}, ${max} in flight`;
}

function textOf(windows: readonly Parameters<typeof formatWindow>[0][]): string {
  return windows.length === 0 ? NONE : windows.map(formatWindow).join(', ');
}
