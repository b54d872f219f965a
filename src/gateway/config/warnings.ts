import { type Fault, formatPath } from './config-error.ts';
import type { Config } from './schema.ts';

/** What a config may well say, and hardly means: nothing of it keeps the gateway from serving. */
export function notesOn({ keys, accounts, routes, limits }: Config): Fault[] {
  const needsAccount = routes.some(({ account }) => account !== undefined);
  const providers = new Set(accounts.map(({ provider }) => provider));
  const callers = new Set(keys.map(({ application }) => application));
  const colon = (route: string): string | undefined => route.split('/').find((segment) => segment.startsWith(':'));
  return [
    ...note(keys.length === 0, 'keys', 'the config has no keys: no request will get through'),
    ...note(routes.length === 0, 'routes', 'the config has no routes: no request will get through'),
    ...note(
      needsAccount && accounts.length === 0,
      'accounts',
      'the config has no accounts: no request of a route with an account will get through',
    ),
    ...accounts.flatMap(({ application }, i) =>
      note(
        keys.length > 0 && !callers.has(application),
        `accounts[${i}].application`,
        'no key is of this application: nobody can reach it',
      ),
    ),
    ...routes.flatMap(({ route }, i) => {
      const segment = colon(route);
      const reason = `${segment} is matched letter by letter; a parameter is {${segment?.slice(1)}}`;
      return note(segment !== undefined, `routes[${i}].route`, reason);
    }),
    ...Object.keys(limits.providers).flatMap((name) =>
      note(
        accounts.length > 0 && !providers.has(name),
        formatPath(['limits', 'providers', name]),
        'no account of the file has this provider',
      ),
    ),
  ];
}

function note(isSo: boolean, path: string, reason: string): Fault[] {
  return isSo ? [{ path, reason }] : [];
}
