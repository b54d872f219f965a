// What all processes of the topic gateway agree on: the requests, the key, the account and the limits.
export const TOKEN = 'a-token-of-the-benchmark';
export const ACCOUNT = 'acc_1';
/** A limit that is never reached, because the topic measures requests that are accepted. */
export const MANY = 1_000_000_000;
export const MIB = 1_048_576;
export const LARGE_BYTES = 20 * MIB;
const JSON_BYTES = 300;
const [SMALL_PATH, LARGE_PATH] = ['/things', '/files'];
const fields = { 'x-api-key': TOKEN };
const keyed = { ...fields, 'content-type': 'application/json' };

/**
 * The requests by workload. With `idempotencyKeys`, each request has a new key. `connections` is how many clients send
 * at a time.
 */
export const REQUESTS = {
  small: { method: 'GET', path: SMALL_PATH, fields, bodyBytes: 0, connections: 64 },
  keyed: {
    method: 'POST',
    path: SMALL_PATH,
    fields: keyed,
    bodyBytes: JSON_BYTES,
    connections: 64,
    idempotencyKeys: true,
  },
  download: { method: 'GET', path: LARGE_PATH, fields, bodyBytes: 0, connections: 4 },
  upload: { method: 'POST', path: LARGE_PATH, fields, bodyBytes: LARGE_BYTES, connections: 4 },
};

export const targetOf = ({ path }) => `${path}?account_id=${ACCOUNT}`;

/** A JSON text of the asked length. */
export function jsonOf(bytes) {
  const empty = JSON.stringify({ subject: 'hello', text: '' });
  return JSON.stringify({ subject: 'hello', text: 'x'.repeat(bytes - empty.length) });
}

/** The config of `headgate serve`: two limits of two windows each. */
export function gatewayConfig({ store, upstreamPort, workers = 1 }) {
  const windows = [`${MANY}/1m`, `${MANY}/1d`];
  const routes = Object.values(REQUESTS).map(({ method, path, idempotencyKeys = false }) => ({
    route: `${method} ${path}`,
    account: 'query.account_id',
    idempotent: idempotencyKeys,
  }));
  return {
    store,
    workers,
    storeDeadlineMs: 10_000,
    upstream: `http://127.0.0.1:${upstreamPort}`,
    keys: [{ token: TOKEN, application: 'app' }],
    accounts: [{ id: ACCOUNT, application: 'app' }],
    routes,
    limits: {
      default: { allMethods: windows, routes: Object.fromEntries(routes.map(({ route }) => [route, windows])) },
    },
    // The keys of a whole run would not fit into the memory store's bound.
    idempotency: { retentionMs: 1_000 },
  };
}
