// The tenants, routes and limits of the topic fairness. Every bound of the gateway has its default.
import { createHash } from 'node:crypto';

/**
 * The tenant whose requests are measured, and the tenant that attacks. Each is an application with a key of its own.
 */
export const [POLITE, NOISY] = ['polite', 'noisy'];
/** More noisy tenants, for an attack whose tenant is refused for a minute: each phase has a new one. */
export const freshTenant = (i) => `${NOISY}_${i}`;
const FRESH_TENANTS = 100;
/** Accounts of the noisy tenant: one without a limit that matters, and one whose limit is used up. */
export const [NOISY_FREE, NOISY_SPENT] = ['noisy_free', 'noisy_spent'];
/** Bytes of a large answer: a little less than the largest that is stored. */
export const LARGE_ANSWER_BYTES = 1_000_000;
const MAX_KEPT_BYTES = 1_048_576;
/** Keys of the config in the attack with unknown keys. */
export const MANY_KEYS = 20_000;

export const tokenOf = (application) => `token-of-${application}`;

/** @param settings `{ store, upstreamPort, freshTenants, keyCount }`; `keyCount` adds keys that are never used */
export function fairnessConfig({ store, upstreamPort, freshTenants = false, keyCount = 0 }) {
  const plenty = ['1000000000/1d'];
  const fresh = Array.from({ length: freshTenants ? FRESH_TENANTS : 0 }, (_, i) => freshTenant(i));
  const applications = [POLITE, NOISY, ...fresh];
  return {
    store,
    upstream: `http://127.0.0.1:${upstreamPort}`,
    keys: [
      ...applications.map((application) => ({ token: tokenOf(application), application })),
      ...Array.from({ length: keyCount }, (_, i) => ({ sha256: sha256(`unused-${i}`), application: `app_${i}` })),
    ],
    accounts: [
      { id: POLITE, application: POLITE },
      { id: NOISY_FREE, application: NOISY },
      { id: NOISY_SPENT, application: NOISY },
    ],
    routes: [
      { route: 'POST /messages', account: 'body.account_id', idempotent: true },
      { route: 'GET /messages', account: 'query.account_id' },
      { route: 'POST /reports', account: 'header.x-account', idempotent: { maxKeptBytes: MAX_KEPT_BYTES } },
      { route: 'POST /files', account: 'header.x-account', idempotent: true },
      { route: 'GET /slow', account: 'header.x-account' },
    ],
    limits: { default: { allMethods: plenty }, accounts: { [NOISY_SPENT]: { allMethods: ['0/1d'] } } },
  };
}

/** The bytes of a request. */
export function requestBytes(methodAndPath, application, fields, body = '') {
  const all = { host: 'localhost', 'x-api-key': tokenOf(application), 'content-length': body.length, ...fields };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.concat([Buffer.from(`${methodAndPath} HTTP/1.1\r\n${lines.join('')}\r\n`), Buffer.from(body)]);
}

const sha256 = (text) => createHash('sha256').update(text).digest('hex');
