import { randomBytes } from 'node:crypto';
import { checkConfig, type Overrides } from '../config/config.ts';
import type { Config, ConfigInput } from '../config/schema.ts';
import { type Address, listen, urlOf } from '../server/listen.ts';
import { createMockProvider } from './mock-provider.ts';

/** The demonstration: what `headgate serve` runs without a config. */
export interface Demo {
  readonly config: Config;
  /** Text for the terminal, with commands to paste. */
  banner(address: Address, adminAddress: Address | undefined): string;
  /** Stops the mock provider. */
  close(): void;
}

const KEYS = { one: 'demo-key-one', two: 'demo-key-two' } as const;

/**
 * Starts the mock provider, and makes a config with it as upstream: two applications with one key each, limits that a
 * few requests reach, and an Admin API with a token of this start.
 * @throws ConfigError on bad flags
 */
export async function startDemo(overrides: Overrides): Promise<Demo> {
  const provider = createMockProvider();
  const providerAddress = await listen(
    provider,
    { host: '127.0.0.1', port: 0 },
    { host: '--upstream', port: '--upstream' },
  );
  const close = (): void => {
    provider.close();
    provider.closeAllConnections();
  };
  try {
    const token = randomBytes(24).toString('base64url');
    const wanted = demoConfig(urlOf(providerAddress), overrides.port, token);
    const config = checkConfig(wanted, 'The command line', overrides);
    return { config, banner: (...addresses) => banner(token, ...addresses), close };
  } catch (error) {
    close();
    throw error;
  }
}

function demoConfig(upstream: string, port: string | undefined, token: string): ConfigInput {
  return {
    upstream,
    // With another main port, the demonstration may run twice, so the admin port must be any free one.
    admin: { port: port === undefined ? 8081 : 0, tokens: [{ name: 'demonstration', role: 'admin', token }] },
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

const CONSOLE = `The console of the Admin API, with a token of the role admin that ends with this process. Open it in a browser:

  LINK

`;

function banner(token: string, address: Address, adminAddress: Address | undefined): string {
  const base = urlOf(address);
  const curl = (times: number, rest: string): string =>
    `for i in $(seq ${times}); do curl -si -H 'X-API-KEY: ${KEYS.one}' ${rest} | grep -iE '^(HTTP|x-ratelimit|retry)|too_many'; echo; done`;
  // A browser does not send the part after the number sign, so the token is in no log of a proxy.
  const link = adminAddress === undefined ? '' : CONSOLE.replace('LINK', `${urlOf(adminAddress)}/#token=${token}`);
  const metrics = adminAddress === undefined ? '' : `, metrics on ${urlOf(adminAddress)}/metrics`;
  return `
headgate listening on ${base}${metrics}

This is the demonstration. It has a mock provider and two applications: app_one (key ${KEYS.one}; accounts
acc_alice and acc_bob) and app_two (key ${KEYS.two}; account acc_carol). Each account may send 3 e-mails per
10 s, and may call each route 5 times per 30 s and 100 times per day. Try these commands in another terminal:

1. Accepted. The headers show the last window that was checked, 100 per day:

  curl -i -X POST -H 'X-API-KEY: ${KEYS.one}' '${base}/api/v1/emails?account_id=acc_alice'

2. Rejected with 429 from the fourth e-mail on, by the route's own window of 3 per 10 s:

  ${curl(4, `-X POST '${base}/api/v1/emails?account_id=acc_alice'`)}

3. This route has no limit of its own. It shows 100 per day of the limit for all methods, and is rejected by 5 per 30 s:

  ${curl(6, `'${base}/api/v1/chats/chat_1?account_id=acc_bob'`)}

4. Sent once: wait 10 s, add -H 'Idempotency-Key: mail-1' to the first command, and run it twice. The second answer is a replay
   of the first, with Idempotency-Replayed: true. Nothing is sent or counted again.

${link}To use your own config: headgate serve --config FILE. Stop with Ctrl-C.
`;
}
