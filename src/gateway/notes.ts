import { type Fault, formatPath } from './faults.ts';
import type { Config } from './schema.ts';

/** What a config may well say, and hardly means: nothing of it keeps the gateway from serving. */
export function notesOn({ keys, accounts, routes, limits }: Config): Fault[] {
  const needsAccount = routes.some(({ account }) => account !== undefined);
  const providers = new Set(accounts.map(({ provider }) => provider));
  const callers = new Set(keys.map(({ application }) => application));
  return [
    ...(keys.length > 0 ? [] : [nobodyPasses('keys', 'the config has no keys')]),
    ...(routes.length > 0 ? [] : [nobodyPasses('routes', 'the config has no routes')]),
    ...(!needsAccount || accounts.length > 0
      ? []
      : [
          {
            path: 'accounts',
            reason: 'the config has no accounts: no request of a route with an account will get through',
          },
        ]),
    ...(keys.length === 0 ? [] : accounts).flatMap(({ application }, index) =>
      callers.has(application)
        ? []
        : [{ path: `accounts[${index}].application`, reason: 'no key is of this application: nobody can reach it' }],
    ),
    ...routes.flatMap(({ route }, index) => {
      const segment = route.split('/').find((text) => text.startsWith(':'));
      return segment === undefined
        ? []
        : [
            {
              path: `routes[${index}].route`,
              reason: `${segment} is matched letter by letter; a parameter is {${segment.slice(1)}}`,
            },
          ];
    }),
    ...Object.keys(accounts.length === 0 ? {} : limits.providers).flatMap((name) =>
      providers.has(name)
        ? []
        : [{ path: formatPath(['limits', 'providers', name]), reason: 'no account of the file has this provider' }],
    ),
  ];
}

function nobodyPasses(path: string, what: string): Fault {
  return { path, reason: `${what}: no request will get through` };
}
