// What all processes of the topic gateway agree on: the requests, the key, the account and the limits.
export const TOKEN = 'a-token-of-the-benchmark';
/** The requests of a workload name these in turn. */
export const ACCOUNTS = Array.from({ length: 1_000 }, (_, i) => `acc_${i + 1}`);
/** A limit that is never reached, because the topic measures requests that are accepted. */
export const MANY = 1_000_000_000;
export const MIB = 1_048_576;
export const LARGE_BYTES = 20 * MIB;
/** Bytes of JSON in a request with an idempotency key, and in each small answer. */
const JSON_BYTES = 300;
export const ANSWER_BYTES = 1_024;
const [SMALL_PATH, LARGE_PATH] = ['/api/v1/things', '/api/v1/files'];
/** Other routes of the config. No request of the benchmark uses them. */
const OTHER_ROUTES = ['chats', 'emails', 'calendars', 'contacts', 'webhooks'].flatMap((name) => [
  `GET /api/v1/${name}/{id}`,
  `POST /api/v1/${name}`,
  `DELETE /api/v1/${name}/{id}`,
]);
/** The fields that a client library sends. */
const fields = {
  'x-api-key': TOKEN,
  accept: 'application/json',
  'accept-encoding': 'gzip, deflate, br',
  'user-agent': 'api-client/2.1 (linux; node 22.11.0)',
  traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
};
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
  decision: {
    method: 'POST',
    path: '/v1/decisions',
    fields: keyed,
    text: JSON.stringify({ route: `GET ${SMALL_PATH}`, account: ACCOUNTS[0] }),
    connections: 64,
  },
  download: { method: 'GET', path: LARGE_PATH, fields, bodyBytes: 0, connections: 4 },
  upload: { method: 'POST', path: LARGE_PATH, fields, bodyBytes: LARGE_BYTES, connections: 4 },
};

/** Envoy's rate limit service: a domain, and the account in the only entry of its descriptor. */
export const DOMAIN = 'api';
export const DESCRIPTOR = { entries: [{ key: 'account' }], account: '{account}' };

export const targetsOf = ({ path, text }) =>
  text === undefined ? ACCOUNTS.map((account) => `${path}?account_id=${account}`) : [path];

/** The body of a request, if it is not a large one. */
export const textOf = ({ text, bodyBytes }) => text ?? (bodyBytes === 0 ? '' : jsonOf(bodyBytes));

/** A JSON text of the asked length. */
export function jsonOf(bytes) {
  const empty = JSON.stringify({ subject: 'hello', text: '' });
  return JSON.stringify({ subject: 'hello', text: 'x'.repeat(bytes - empty.length) });
}

/** The config of `headgate serve`: two limits of two windows each. */
export function gatewayConfig({ store, upstreamPort, workers = 1, leases = false }) {
  const windows = [`${MANY}/1m`, `${MANY}/1d`];
  const forwarded = Object.values(REQUESTS).filter(({ text }) => text === undefined);
  const measured = forwarded.map(({ method, path, idempotencyKeys = false }) => ({
    route: `${method} ${path}`,
    idempotent: idempotencyKeys,
  }));
  const routes = [...measured, ...OTHER_ROUTES.map((route) => ({ route }))].map((route) => ({
    account: 'query.account_id',
    ...route,
  }));
  return {
    store,
    workers,
    storeDeadlineMs: 10_000,
    upstream: `http://127.0.0.1:${upstreamPort}`,
    keys: [{ token: TOKEN, application: 'app' }],
    accounts: ACCOUNTS.map((id) => ({ id, application: 'app' })),
    routes,
    ...(leases && { leases }),
    limits: {
      default: { allMethods: windows, routes: Object.fromEntries(routes.map(({ route }) => [route, windows])) },
    },
    // The keys of a whole run would not fit into the memory store's bound.
    idempotency: { retentionMs: 1_000 },
  };
}
