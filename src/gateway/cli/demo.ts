import { checkConfig, type Overrides } from '../config/config.ts';
import type { Config, ConfigInput } from '../config/schema.ts';
import { type Address, listen, urlOf } from '../server/listen.ts';
import { createMockProvider } from './mock-provider.ts';

/** What `headgate serve` runs without a config. */
export interface Demo {
  readonly config: Config;
  /** For a person at a terminal, with commands to paste. */
  banner(address: Address, adminAddress: Address | undefined): string;
  /** Stops the mock provider. */
  close(): void;
}

const KEYS = { one: 'demo-key-one', two: 'demo-key-two' } as const;

/**
 * Starts the mock provider, and makes a config with it as upstream: two applications with a key each, limits low enough to be felt.
 * @throws ConfigError on bad flags
 */
export async function startDemo(overrides: Overrides): Promise<Demo> {
  const provider = createMockProvider();
  const providerAddress = await listen(provider, { host: '127.0.0.1', port: 0 }, '--upstream');
  const close = (): void => {
    provider.close();
    provider.closeAllConnections();
  };
  try {
    const config = checkConfig(demoConfig(urlOf(providerAddress), overrides.port), 'The command line', overrides);
    return { config, banner, close };
  } catch (error) {
    close();
    throw error;
  }
}

function demoConfig(upstream: string, port: string | undefined): ConfigInput {
  return {
    upstream,
    // Next to the main listener's usual port; where that is another, the demonstration may be there twice.
    admin: { port: port === undefined ? 8081 : 0 },
    keys: [
      { token: KEYS.one, application: 'app_one' },
      { token: KEYS.two, application: 'app_two' },
    ],
    accounts: [
      { id: 'acc_alice', application: 'app_one', provider: 'mock' },
      { id: 'acc_bob', application: 'app_one', provider: 'mock' },
      { id: 'acc_carol', application: 'app_two', provider: 'mock' },
    ],
    routes: [
      { route: 'POST /api/v1/emails', account: 'query.account_id', idempotent: true },
      { route: 'GET /api/v1/chats/{chat_id}', account: 'query.account_id' },
      { route: 'GET /v2/accounts' },
    ],
    limits: {
      providers: {
        mock: { allMethods: ['5/30s', '100/1d'], routes: { 'POST /api/v1/emails': ['3/10s'] } },
      },
    },
  };
}

function banner(address: Address, adminAddress: Address | undefined): string {
  const base = urlOf(address);
  const curl = (times: number, rest: string): string =>
    `for i in $(seq ${times}); do curl -si -H 'X-API-KEY: ${KEYS.one}' ${rest} | grep -iE '^(HTTP|x-ratelimit|retry)|too_many'; echo; done`;
  const metrics = adminAddress === undefined ? '' : `, metrics on ${urlOf(adminAddress)}/metrics`;
  return `
headgate listening on ${base}${metrics}

This is the demonstration: a mock provider, applications app_one (key ${KEYS.one}; accounts acc_alice, acc_bob)
and app_two (key ${KEYS.two}; account acc_carol). An account may send 3 e-mails in 10 s, and call each route
5 times in 30 s and 100 times a day. Try, in another terminal:

1. Accepted. The headers show the last window that was checked, 100 a day:

  curl -i -X POST -H 'X-API-KEY: ${KEYS.one}' '${base}/api/v1/emails?account_id=acc_alice'

2. Rejected with 429 from the fourth e-mail on, by the route's own window of 3 in 10 s:

  ${curl(4, `-X POST '${base}/api/v1/emails?account_id=acc_alice'`)}

3. The other limit: a route without a limit of its own shows All methods' 100 a day, and is rejected by its 5 in 30 s:

  ${curl(6, `'${base}/api/v1/chats/chat_1?account_id=acc_bob'`)}

4. Sent once: 10 s later, add -H 'Idempotency-Key: mail-1' to the first command, and run it twice. The second answer is the first
   one's, marked Idempotency-Replayed: true; nothing was sent again, and nothing counted.

A config of your own: headgate serve --config FILE. Stop with Ctrl-C.
`;
}
