import { inspect } from 'node:util';
import { startFakeRedis } from 'headgate-testbed/fake-redis';
import { Redis } from 'ioredis';
import { expect, it, onTestFinished } from 'vitest';
import { createRedisClaimStore } from '../../../src/stores/redis/claims.ts';
import { createRedisStore } from '../../../src/stores/redis/limits.ts';

it('no error of a store shows what was sent to Redis: tokens, stored responses, accounts', async () => {
  const port = await startFakeRedis(([name]) =>
    name?.toLowerCase().startsWith('eval') ? '-NOAUTH Authentication required.\r\n' : undefined,
  );
  const redis = new Redis(port, '127.0.0.1');
  onTestFinished(() => redis.disconnect());
  await new Promise((resolve) => redis.once('ready', resolve));
  const errors: unknown[] = [];
  const onError = (error: unknown) => void errors.push(error);
  const store = createRedisClaimStore(redis, { onError });
  const result = { status: 'ok', value: 'hunter2' };
  const command = { token: 'hunter2', fingerprint: 'f', retentionMs: 1_000, result };
  const rejected = await Promise.resolve(store.complete({ scope: 's', key: 'k' }, command)).catch((error) => error);
  expect(rejected).toMatchObject({ code: 'store_unavailable', message: expect.stringContaining('NOAUTH') });
  expect(errors).toHaveLength(1);
  for (const error of [rejected, ...errors]) expect(inspect(error, { depth: 10 })).not.toMatch('hunter2');
});

it.each<[string, unknown]>([
  ['a URL', 'redis://:hunter2@localhost:6379'],
  ['options of a client', { password: 'hunter2', url: 'redis://:hunter2@localhost' }],
])('an error for %s in place of a client does not show the password', (_, given) => {
  for (const create of [createRedisStore, createRedisClaimStore]) {
    try {
      create(given as never);
      expect.unreachable();
    } catch (error) {
      expect(inspect(error, { showHidden: true, depth: 10 })).toMatch(
        'client: must be a client of ioredis 5 or 6, or of node-redis 5 or 6, got',
      );
      expect(inspect(error, { showHidden: true, depth: 10 })).not.toMatch('hunter2');
    }
  }
});

// The methods by which the old clients are known. Their packages are not installed here.
const run = async () => {};
it.each([
  ['4', 'one of node-redis 4', { evalSha: run, eval: run, scan: run, unlink: run, isReady: true }],
  ['4, a cluster', 'one of node-redis 4', { evalSha: run, eval: run, nodeClient: run, masters: [] }],
  ['3', 'one of node-redis 3 or older', { evalsha: run, eval: run, internal_send_command: run, ready: true }],
])('an error for a client of node-redis %s names versions', (_, got, client) => {
  const message = `client: must be a client of ioredis 5 or 6, or of node-redis 5 or 6, got ${got}`;
  for (const create of [createRedisStore, createRedisClaimStore]) {
    expect(() => create(client as never)).toThrow(expect.objectContaining({ code: 'invalid_option', message }));
  }
});
