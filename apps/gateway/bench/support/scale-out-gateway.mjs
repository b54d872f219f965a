import { startGatewayProcess } from './gateway-process.mjs';
import { ACCOUNTS, accountName, HOT_ACCOUNTS, HOT_LIMITS, hotName, LIMITS, ROUTE, TOKEN } from './scale-out-limits.mjs';

const DEADLINE_MS = 10_000;

/**
 * Starts a gateway in front of an upstream.
 * @param folder where its config file is written
 */
export function startGateway({ folder, name, store, upstreamPort }) {
  return startGatewayProcess({ folder, name, config: config({ store, upstreamPort }) });
}

function config({ store, upstreamPort }) {
  const all = (count, nameOf) => Array.from({ length: count }, (_, i) => nameOf(i));
  const [accounts, hot] = [all(ACCOUNTS, accountName), all(HOT_ACCOUNTS, hotName)];
  return {
    store,
    storeDeadlineMs: DEADLINE_MS,
    upstream: `http://127.0.0.1:${upstreamPort}`,
    keys: [{ token: TOKEN, application: 'app' }],
    accounts: [...accounts, ...hot].map((id) => ({ id, application: 'app' })),
    routes: [{ route: ROUTE, account: 'header.x-account' }],
    limits: { default: LIMITS, accounts: Object.fromEntries(hot.map((id) => [id, HOT_LIMITS])) },
  };
}
