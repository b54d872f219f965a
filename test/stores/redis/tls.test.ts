/** Clients that connect over TLS, as a user with an ACL. */

import { startTlsRedis, type TlsServer } from 'headgate-testbed/redis-tls';
import { Redis } from 'ioredis';
import { createClient } from 'redis';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { parseLimit } from '../../../src/core/limit.ts';
import { createWindowSet } from '../../../src/core/window-set.ts';
import { createRedisStore } from '../../../src/stores/redis/limits.ts';
import { type ConnectedClient, ofIoredis, ofNodeRedis } from '../../support/redis-clients.ts';

const windowSet = createWindowSet([], parseLimit(['3/1h']));
/** The user may only use keys with the store's prefix, and the commands of scripts and of `reset`. */
const USER = ['--user', 'gate', 'on', '>s3cret', '~headgate:*', '-@all'];
const MAY = ['+@connection', '+@scripting', '+@string', '+@read', '+unlink', '+time', '+scan', '+info'];

let server: TlsServer;
beforeAll(async () => {
  server = await startTlsRedis(...USER, ...MAY);
});
afterAll(() => server.stop());

const CONNECTS: Record<string, () => Promise<ConnectedClient>> = {
  ioredis: () =>
    ofIoredis(
      new Redis({
        port: server.tlsPort,
        host: '127.0.0.1',
        username: 'gate',
        password: 's3cret',
        tls: { ca: server.cert },
      }),
    ),
  'node-redis': () =>
    ofNodeRedis(
      createClient({
        url: `rediss://gate:s3cret@127.0.0.1:${server.tlsPort}`,
        socket: { tls: true, ca: server.cert },
      }),
    ),
};

it.each(Object.keys(CONNECTS))('decides, refunds, peeks and resets: %s', async (name) => {
  const { client, disconnect } = await (CONNECTS[name] as () => Promise<ConnectedClient>)();
  onTestFinished(disconnect);
  const errors: unknown[] = [];
  const store = createRedisStore(client, { deadlineMs: 10_000, onError: (error) => errors.push(error) });
  const consume = async () => store.consume(name, 'route', windowSet, 1);
  const remaining = async () => (await store.peek(name, 'route', windowSet))[0]?.remaining;
  const decisions = [];
  for (let i = 0; i < 4; i++) decisions.push(await consume());
  expect(decisions.map(({ accepted }) => accepted)).toEqual([true, true, true, false]);
  expect(await store.settle(decisions[0] as (typeof decisions)[number], 0)).toBe(true);
  expect(await remaining()).toBe(1);
  for (const target of [{ account: name, route: 'route' }, { account: name }, {}]) {
    await store.reset(target);
    expect(await remaining()).toBe(3);
    await consume();
  }
  expect(errors).toEqual([]);
  expect(store.stats().degraded).toBe(0);
});
