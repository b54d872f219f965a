/** I12: what never left this process needs no command in the background. */

import { type RedisServer, startRedis, until } from 'headgate-testbed/redis-server';
import { Redis } from 'ioredis';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createIdempotency } from '../../../src/index.ts';
import { createRedisClaimStore } from '../../../src/stores/redis/claims.ts';
import { CLIENTS } from '../../support/redis-clients.ts';

const DEADLINE_MS = 100;
const KEYS = Array.from({ length: 30 }, (_, i) => `k${i}`);
const never = () => expect.unreachable();

async function start(connect: (typeof CLIENTS)[string]) {
  const server = await startRedis();
  const { client, disconnect } = await connect(server.port);
  const store = createRedisClaimStore(client, { deadlineMs: DEADLINE_MS });
  const idempotency = createIdempotency({ store });
  onTestFinished(async () => {
    await idempotency.close({ timeoutMs: 1 });
    disconnect();
    await server.stop();
  });
  const isBack = () =>
    store.inspect({ scope: '', key: 'probe' }).then(
      () => true,
      () => false,
    );
  await until(isBack, 'the store answers');
  return { server, store, idempotency, isBack };
}

/** Counts the scripts that a server was told to run. */
async function scriptsOf({ port }: RedisServer): Promise<number> {
  const admin = new Redis({ port, host: '127.0.0.1' });
  const stats = await admin.info('commandstats');
  admin.disconnect();
  return [...stats.matchAll(/cmdstat_eval(?:sha)?:calls=(\d+)/g)].reduce((sum, [, calls]) => sum + Number(calls), 0);
}

describe.each(Object.entries(CLIENTS))('%s', (_name, connect) => {
  it('without a connection: no claim can exist, so nothing is sent when Redis is back', async () => {
    const { server, idempotency, isBack } = await start(connect);
    await server.kill();
    // The first command after the loss may have been written into the broken connection.
    await until(async () => {
      const { error } = (await idempotency.run('first', 'r', never)) as { error: { sent?: boolean } };
      return error.sent === false;
    }, 'the client has noticed the loss');
    const { pending } = idempotency;
    for (const key of KEYS) {
      expect(await idempotency.run(key, 'r', never)).toMatchObject({ kind: 'unavailable', error: { sent: false } });
    }
    expect(idempotency.pending).toBe(pending);
    await server.restart();
    let probes = 0;
    await until(() => {
      probes++;
      return isBack();
    }, 'the store answers again');
    await idempotency.idle();
    // At most two scripts per command: the server has to learn the source first.
    expect(await scriptsOf(server)).toBeLessThanOrEqual(2 * (pending + probes));
  });

  it('behind an open circuit breaker: only the calls that were sent are released', async () => {
    const { server, store, idempotency } = await start(connect);
    server.freeze();
    const sent: string[] = [];
    for (const key of KEYS) {
      const result = await idempotency.run(key, 'r', never);
      if ((result as { error: { sent?: boolean } }).error.sent !== false) sent.push(key);
    }
    expect(store.stats().breaker).not.toBe('closed');
    expect(idempotency.pending).toBe(sent.length);
    expect(sent.length).toBeLessThan(KEYS.length / 2);
    server.thaw();
    await idempotency.idle();
    expect(await idempotency.run('k29', 'r', () => 1)).toMatchObject({ kind: 'executed' });
  });
});
