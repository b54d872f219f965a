import { type ConfigIssue, formatPath } from './config-error.ts';
import type { Config } from './schema.ts';
import { didYouMean } from './suggest.ts';

/** A shorter secret can be found by trial by a reader of the store. */
const GOOD_SECRET_LENGTH = 16;

/** Settings that are valid but probably mistakes. The gateway serves with them. */
export function warningsFor(config: Config): ConfigIssue[] {
  const { keys, accounts, routes, limits, idempotency, maxBodyBytes, maxBufferedBytes, perApplication } = config;
  const hasAccountRoute = routes.some(({ account }) => account !== undefined);
  const providers = new Set(accounts.flatMap(({ provider }) => provider ?? []));
  const applications = new Set(keys.map(({ application }) => application));
  return [
    ...warnIf(keys.length === 0, 'keys', 'the config has no keys, so every request is refused'),
    ...warnIf(routes.length === 0, 'routes', 'the config has no routes, so every request is refused'),
    ...warnIf(
      hasAccountRoute && accounts.length === 0,
      'accounts',
      'the config has no accounts, so requests for a route with an account are refused',
    ),
    ...accounts.flatMap(({ application }, i) =>
      warnIf(
        keys.length > 0 && !applications.has(application),
        `accounts[${i}].application`,
        'no key belongs to this application, so no request can reach the account',
      ),
    ),
    ...routes.flatMap(({ route }, i) => {
      const segment = route.split('/').find((part) => part.startsWith(':'));
      const reason = `${segment} is matched letter by letter; write a parameter as {${segment?.slice(1)}}`;
      return warnIf(segment !== undefined, `routes[${i}].route`, reason);
    }),
    ...Object.keys(limits.providers).flatMap((name) =>
      warnIf(
        accounts.length > 0 && !providers.has(name),
        formatPath(['limits', 'providers', name]),
        `no account of the file has this provider${didYouMean(name, [...providers])}`,
      ),
    ),
    ...warnIf(
      maxBufferedBytes < maxBodyBytes,
      'maxBufferedBytes',
      'smaller than maxBodyBytes, so a longer body that must be buffered is always refused',
    ),
    ...warnIf(
      perApplication.maxBufferedBytes < maxBodyBytes,
      'perApplication.maxBufferedBytes',
      'smaller than maxBodyBytes, so a longer body that must be buffered is always refused',
    ),
    ...warnIf(
      idempotency.secret !== undefined && idempotency.secret.length < GOOD_SECRET_LENGTH,
      'idempotency.secret',
      `shorter than ${GOOD_SECRET_LENGTH} characters, so it can be guessed`,
    ),
  ];
}

function warnIf(isSo: boolean, path: string, reason: string): ConfigIssue[] {
  return isSo ? [{ path, reason }] : [];
}
