/** S29: requests in flight of real processes on a real Redis, which are killed, or frozen. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { bundle } from 'headgate-testbed/bundle';
import { type RedisServer, startRedis, until } from 'headgate-testbed/redis-server';
import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, expect, it, onTestFinished } from 'vitest';
import type { InFlightEvent } from '../../../src/core/in-flight-channel.ts';
import { createLimiter, type Decision } from '../../../src/index.ts';
import { createRedisStore, type RedisStore } from '../../../src/stores/redis/limits.ts';
import type { InFlightOrder } from '../../support/in-flight-process.ts';

const LEASE_MS = 1_000;
const SUBJECT = { account: 'a', route: 'r' };

let server: RedisServer;
let program: string;
beforeAll(async () => {
  [server, program] = await Promise.all([
    startRedis(),
    bundle(join(import.meta.dirname, '../../support/in-flight-process.ts')),
  ]);
});
afterEach(() => server.thaw());
afterAll(async () => {
  rmSync(dirname(program), { recursive: true, force: true });
  await server.stop();
});

async function connect(prefix: string, options = {}): Promise<RedisStore> {
  const client = new Redis({ port: server.port, lazyConnect: true, enableOfflineQueue: false });
  client.on('error', () => {});
  onTestFinished(() => client.disconnect());
  await client.connect();
  return createRedisStore(client, { prefix, logger: false, ...options });
}

const running = async (store: RedisStore): Promise<number | undefined> =>
  (await store.holdSlot({ ...SUBJECT, token: '-', most: { allMethods: 0 } }, 1)).running.allMethods;

/** An upstream that counts its requests. */
async function startUpstream() {
  const seen = { now: 0, most: 0, served: 0 };
  const upstream = createServer((_, response) => {
    seen.most = Math.max(seen.most, ++seen.now);
    response.once('close', () => seen.now--);
    setTimeout(
      () => {
        seen.served++;
        response.end('done');
      },
      2 + Math.random() * 20,
    );
  });
  await once(upstream.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => void upstream.close());
  return { seen, port: (upstream.address() as AddressInfo).port };
}

it('S29: 4 processes with 200 clients never send more than the limit; the slots of a killed one come back', async () => {
  const store = await connect('processes');
  const { seen, port: upstream } = await startUpstream();
  const order: InFlightOrder = {
    port: server.port,
    prefix: 'processes',
    upstream,
    inFlight: 10,
    leaseMs: LEASE_MS,
    clients: 50,
  };
  const children = Array.from({ length: 4 }, (): ChildProcess => {
    const child = spawn(process.execPath, [program, JSON.stringify(order)], { stdio: ['pipe', 'ignore', 'inherit'] });
    onTestFinished(() => void child.kill('SIGKILL'));
    return child;
  });
  await until(() => seen.served > 300, 'requests were served', 30_000);
  const [killed, ...others] = children as [ChildProcess, ...ChildProcess[]];
  killed.kill('SIGKILL');
  await once(killed, 'exit');
  const before = seen.served;
  await until(() => seen.served > before + 300, 'the others go on', 30_000);
  const codes = others.map(async (child) => {
    child.stdin?.end();
    return (await once(child, 'exit'))[0];
  });
  expect(await Promise.all(codes)).toEqual([0, 0, 0]);
  expect(seen.most).toBe(10);
  // What the killed process held is over with its lease.
  await until(async () => (await running(store)) === 0, 'no slot is left', 5 * LEASE_MS);
}, 90_000);

it('S29, S17: while Redis is frozen, this process counts what it runs; nothing leaks', async () => {
  const store = await connect('frozen', { deadlineMs: 100 });
  const events: InFlightEvent[] = [];
  const limiter = createLimiter({
    store,
    limits: { allMethods: { windows: ['1000/1m'], inFlight: 3 } },
    inFlight: { leaseMs: LEASE_MS, onEvent: (event) => events.push(event) },
  });
  const held: Decision[] = [await limiter.consume(SUBJECT), await limiter.consume(SUBJECT)];
  server.freeze();
  const [third, fourth] = [await limiter.consume(SUBJECT), await limiter.consume(SUBJECT)];
  expect([third, fourth].map(({ accepted, degraded, inFlight }) => [accepted, degraded, inFlight])).toEqual([
    [true, true, { running: 3, max: 3 }],
    [false, true, { running: 3, max: 3 }],
  ]);
  expect(await limiter.release(held[0] as Decision)).toBe(true);
  const fifth = await limiter.consume(SUBJECT);
  expect([fifth.accepted, fifth.degraded]).toEqual([true, true]);
  server.thaw();
  // The slots that this process took by itself are the server's again with their next renewal.
  const isDegraded = async (): Promise<boolean> => {
    const decision = await limiter.consume({ account: 'b', route: 'r' });
    // On a busy machine, its lease would be over before the test is, which is an event.
    await limiter.release(decision);
    return decision.degraded;
  };
  await until(async () => !(await isDegraded()), 'Redis answers');
  await until(async () => (await running(store)) === 3, 'the server counts all three', 5 * LEASE_MS);
  for (const decision of [...held, third, fifth]) await limiter.release(decision);
  await until(async () => (await running(store)) === 0, 'no slot is left', 5 * LEASE_MS);
  expect(events.filter(({ type }) => type !== 'taken_again')).toEqual([]);
}, 60_000);

it.each(['admit', 'refuse'] as const)(
  'S29: onStoreFailure %s decides about slots, too',
  async (onStoreFailure) => {
    const store = await connect(onStoreFailure, { deadlineMs: 100, onStoreFailure });
    const limiter = createLimiter({
      store,
      limits: { allMethods: { inFlight: 1 } },
      inFlight: { leaseMs: LEASE_MS },
      validate: false,
    });
    const one = await limiter.consume(SUBJECT);
    server.freeze();
    if (onStoreFailure === 'refuse')
      await expect(limiter.consume(SUBJECT)).rejects.toMatchObject({ code: 'store_timeout' });
    else {
      const two = await limiter.consume(SUBJECT);
      expect([two.accepted, two.degraded]).toEqual([true, true]);
      await limiter.release(two);
    }
    server.thaw();
    await until(async () => (await limiter.consume(SUBJECT)).accepted === false, 'Redis answers');
    expect(await limiter.release(one)).toBe(true);
    await until(async () => (await running(store)) === 0, 'no slot is left', 5 * LEASE_MS);
  },
  60_000,
);
