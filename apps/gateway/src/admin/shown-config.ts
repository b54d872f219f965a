import type { Config } from '../config/schema.ts';

const SHOWN_DIGITS = 8;

/**
 * A config without its secrets, for operators. API keys are listed by a separate operation, because there may be many.
 * Of the accounts only the number is shown, because there may be even more.
 */
export function shownConfig({
  keys,
  accounts,
  admin,
  decisions,
  listen,
  store,
  idempotency,
  upstream,
  upstreams,
  ...rest
}: Config) {
  const { secret, ...settings } = idempotency;
  return {
    ...rest,
    listen: { ...listen, tls: shownTls(listen.tls) },
    ...(decisions && { decisions: shownDecisions(decisions) }),
    ...(admin && {
      admin: {
        ...admin,
        tls: shownTls(admin.tls),
        tokens: admin.tokens.map(({ sha256, ...token }) => ({ ...token, sha256: sha256.slice(0, SHOWN_DIGITS) })),
      },
    }),
    store: shownStore(store),
    upstream: shownUpstream(upstream),
    upstreams: Object.fromEntries(Object.entries(upstreams).map(([name, given]) => [name, shownUpstream(given)])),
    idempotency: { ...settings, hasSecret: secret !== undefined },
    keys: keys.length,
    accounts: accounts.length,
  };
}

function shownDecisions({ secret, tls, ...rest }: NonNullable<Config['decisions']>) {
  return { ...rest, tls: shownTls(tls), hasSecret: secret !== undefined };
}

/** The files of TLS are private, but whether clients need a certificate is not. */
function shownTls(tls: Config['listen']['tls']) {
  return tls && { minVersion: tls.minVersion, hasClientCa: tls.clientCa !== undefined };
}

function shownUpstream(given: Config['upstream']) {
  return typeof given === 'string' ? withoutPassword(given) : { ...given, url: withoutPassword(given.url) };
}

function shownStore(store: Config['store']) {
  if (typeof store === 'string') return withoutPassword(store);
  const { url, password, ca, ...rest } = store.postgres;
  return { postgres: { ...rest, url: withoutPassword(url), hasCa: ca !== undefined } };
}

/** A URL of a store or an upstream without the user and password before its host. */
function withoutPassword(url: string): string {
  return url.replace(/^([a-z-]+:\/\/).*@/is, '$1');
}
