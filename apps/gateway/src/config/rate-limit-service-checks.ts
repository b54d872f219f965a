import { describe } from 'headgate/internal';
import { isConsumer, isLimited } from './account-source.ts';
import { type ConfigIssue, formatPath, issueIf } from './config-error.ts';
import { arrayOrEmpty, type JsonObject, objectOrEmpty } from './json.ts';
import { isLoopback } from './loopback.ts';
import type { Config } from './schema.ts';
import { didYouMean } from './suggest.ts';

/** The keys that an account names, such as `id` in `{id}`. */
export function keysIn(account: string): string[] {
  return [...account.matchAll(/\{([^{}]*)\}/g)].map(([, key]) => key as string);
}

/** Whether callers without any credential can come from other machines. */
export function exposedServiceIssues({ rateLimitService }: JsonObject): ConfigIssue[] {
  const { host = '127.0.0.1', insecure } = objectOrEmpty(rateLimitService);
  if (typeof host !== 'string' || isLoopback(host) || insecure === true) return [];
  const advice = 'listen on 127.0.0.1, or set "insecure": true in a network that only your proxies can reach';
  return [{ path: 'rateLimitService.host', reason: `anybody who reaches ${describe(host)} could use it: ${advice}` }];
}

/** Descriptors that could never limit anything are faults. */
export function descriptorIssues(file: JsonObject): ConfigIssue[] {
  const routes = arrayOrEmpty(file.routes).map((route) => objectOrEmpty(route).route);
  const names = routes.filter((route) => typeof route === 'string');
  return descriptorsOf(file).flatMap(({ path, descriptor }) => {
    const { route, account, entries } = objectOrEmpty(descriptor);
    const isUnknown = typeof route === 'string' && !names.includes(route);
    const keys = arrayOrEmpty(entries).map((entry) => objectOrEmpty(entry).key);
    const missing = typeof account === 'string' ? keysIn(account).find((key) => !keys.includes(key)) : undefined;
    return [
      ...issueIf(
        `${path}.route`,
        isUnknown ? `routes has no ${describe(route)}${didYouMean(route, names)}` : undefined,
      ),
      ...issueIf(`${path}.account`, missing === undefined ? undefined : `no entry has the key ${describe(missing)}`),
    ];
  });
}

/** The same for a config with every default, such as the account of its routes. */
export function unlimitedDescriptors({ rateLimitService, routes, accounts, keys }: Config): ConfigIssue[] {
  if (rateLimitService === undefined) return [];
  const known = new Map(routes.map((route) => [route.route, route]));
  return Object.entries(rateLimitService.domains).flatMap(([domain, descriptors]) =>
    descriptors.flatMap(({ route: name, account }, i) => {
      const path = `${formatPath(['rateLimitService', 'domains', domain])}[${i}]`;
      const route = known.get(name);
      if (route === undefined) return [];
      if (!isLimited(route))
        return [{ path: `${path}.route`, reason: 'the route has no account, so nothing is limited: give it one' }];
      if (keysIn(account).length > 0 || route.account === 'address') return [];
      const names = !isConsumer(route.account)
        ? accounts.map(({ id }) => id)
        : keys.map((key) => (route.account === 'key' ? key.name : key.application));
      if (names.includes(account)) return [];
      return [
        { path: `${path}.account`, reason: `nothing that the route counts has this name${didYouMean(account, names)}` },
      ];
    }),
  );
}

function descriptorsOf({ rateLimitService }: JsonObject): { readonly path: string; readonly descriptor: unknown }[] {
  const domains = objectOrEmpty(objectOrEmpty(rateLimitService).domains);
  return Object.entries(domains).flatMap(([domain, descriptors]) =>
    arrayOrEmpty(descriptors).map((descriptor, i) => ({
      path: `${formatPath(['rateLimitService', 'domains', domain])}[${i}]`,
      descriptor,
    })),
  );
}
