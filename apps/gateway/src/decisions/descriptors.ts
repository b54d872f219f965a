import type { Accounts } from '../admission/accounts.ts';
import { consumerId, consumerOf, isConsumer } from '../config/account-source.ts';
import { type Route, routesOf } from '../config/routes.ts';
import type { Account, Config } from '../config/schema.ts';

/** An entry of a descriptor. */
export interface DescriptorEntry {
  readonly key: string;
  readonly value: string;
}

/** The route and the account whose windows a descriptor uses. */
export interface DescriptorSubject {
  readonly route: Route;
  /** Undefined if the config has no such account, key or application, or if the value is not an address. */
  readonly account: Account | undefined;
  readonly isShadow: boolean;
}

/** Finds the subject of a descriptor. Undefined if the config has none for it. */
export type FindDescriptor = (domain: string, entries: readonly DescriptorEntry[]) => DescriptorSubject | undefined;

/** @param config with checked descriptors */
export function createDescriptors(
  config: Pick<Config, 'rateLimitService' | 'routes' | 'idempotency'>,
  accounts: Pick<Accounts, 'find'>,
): FindDescriptor {
  const routes = new Map(routesOf(config).map((route) => [route.name, route]));
  const domains = new Map(Object.entries(config.rateLimitService?.domains ?? {}));
  const accountOf = ({ source }: Route, name: string): Account | undefined => {
    if (isConsumer(source?.place)) return accounts.find(consumerId(source.place, name));
    // A value of a request must not name the account of a key, an application or an address.
    return consumerOf(name) === undefined ? accounts.find(name) : undefined;
  };
  return (domain, entries) => {
    const found = domains
      .get(domain)
      ?.find(
        (each) =>
          each.entries.length === entries.length &&
          each.entries.every(
            ({ key, value }, i) => key === entries[i]?.key && (value ?? entries[i]?.value) === entries[i]?.value,
          ),
      );
    if (found === undefined) return undefined;
    const route = routes.get(found.route) as Route;
    const values = new Map(entries.map(({ key, value }) => [key, value]));
    const name = found.account.replace(/\{([^{}]*)\}/g, (_, key: string) => values.get(key) ?? '');
    return { route, account: accountOf(route, name), isShadow: found.shadow };
  };
}
