/** Large results over a connection of their own: nothing else waits for them, and no claim depends on them. */
import type { Socket } from 'node:net';
import { Caller } from 'headgate-testbed/redis-load';
import { type RedisServer, startRedis, until } from 'headgate-testbed/redis-server';
import { startTcpProxy, type TcpProxy } from 'headgate-testbed/tcp-proxy';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { parseLimit } from '../../../src/core/limit.ts';
import { createWindowSet } from '../../../src/core/window-set.ts';
import { createIdempotency } from '../../../src/index.ts';
import type { RedisClaimStoreOptions } from '../../../src/stores/redis/claim-options.ts';
import { createRedisClaimStore, type RedisClaimStore } from '../../../src/stores/redis/claims.ts';
import { claimKey } from '../../../src/stores/redis/keys.ts';
import { createRedisStore } from '../../../src/stores/redis/limits.ts';

const MIB = 1_048_576;
const LARGE = 'x'.repeat(20_000);
const DEADLINE_MS = 1_000;
const common = { token: 'a', fingerprint: 'f', retentionMs: 60_000 };
const begin = { ...common, leaseMs: 30_000, onOrphan: 'reject', dispatch: false } as const;
const completing = { ...common, result: { status: '200', value: LARGE } };

let server: RedisServer;
let admin: Redis;
/** In front of the connection for large values. */
let wire: TcpProxy;
let client: Redis;
let largeClient: Redis;
let stores = 0;
let prefix: string;
beforeAll(async () => {
  server = await startRedis();
  admin = new Redis({ port: server.port, host: '127.0.0.1' });
  await admin.ping();
});
afterAll(async () => {
  admin.disconnect();
  await server.stop();
});
beforeEach(async () => {
  prefix = `large-${stores++}`;
  wire = await startTcpProxy(server.port);
  client = await connect(server.port);
  largeClient = await connect(wire.port);
  onTestFinished(() => wire.close());
});

async function connect(port: number): Promise<Redis> {
  const options = { enableOfflineQueue: false, maxRetriesPerRequest: 0, autoResendUnfulfilledCommands: false };
  const connected = new Redis({ port, host: '127.0.0.1', ...options });
  connected.on('error', () => {});
  onTestFinished(() => connected.disconnect());
  await new Promise((resolve) => connected.once('ready', resolve));
  return connected;
}

const newStore = (options: RedisClaimStoreOptions = {}): RedisClaimStore =>
  createRedisClaimStore(client, { prefix, deadlineMs: DEADLINE_MS, largeValues: { client: largeClient }, ...options });
const failure = async (promise: Promise<unknown>): Promise<unknown> => promise.catch((error: unknown) => error);
const idOf = (key: string) => ({ scope: 'app', key });

describe('a slow network', () => {
  it('S17, I12: ten clients with results of 1 MiB: every decision and every claim of another tenant is made in time', async () => {
    const link = await startTcpProxy(server.port);
    onTestFinished(() => link.close());
    const [shared, large] = await Promise.all([connect(link.port), connect(link.port)]);
    const limits = createRedisStore(shared, { prefix, deadlineMs: DEADLINE_MS, denyCacheMaxMs: 0 });
    const claims = createRedisClaimStore(shared, { prefix, deadlineMs: DEADLINE_MS, largeValues: { client: large } });
    const caller = new Caller(limits, createWindowSet([], parseLimit(['1000000/1h'])));
    await Promise.all([caller.check(), claims.inspect(idOf('warm up'))]);
    await claims.complete(idOf('known'), { ...common, result: { status: '200', value: 'x'.repeat(MIB) } });
    // Ten results take longer than the deadline, and the deadline is long enough for a busy machine.
    link.bytesPerSecond = 4 * MIB;
    let isOver = false;
    const attack = async (i: number): Promise<void> => {
      for (let n = 0; !isOver; n++) {
        const id = { scope: 'hostile', key: `${i}-${n}` };
        const result = { status: '200', value: 'x'.repeat(MIB) };
        if (i % 2 === 0) await failure(claims.complete(id, { ...common, result }));
        else await failure(claims.begin(idOf('known'), begin));
      }
    };
    const attacks = Array.from({ length: 10 }, (_, i) => attack(i));
    const calls = claims.stats().calls;
    for (let n = 0; n < 60; n++) {
      const id = { scope: 'polite', key: String(n) };
      expect(await caller.check()).toBe('accepted');
      expect(await claims.begin(id, begin)).toMatchObject({ kind: 'claimed' });
      expect(await claims.complete(id, { ...completing, result: { status: '200', value: 'sent' } })).toEqual({
        kind: 'ok',
      });
    }
    isOver = true;
    expect(claims.stats().calls - calls).toBeGreaterThan(60 * 2);
    expect([limits.stats(), claims.stats()]).toMatchObject([
      { timeouts: 0, degraded: 0, breaker: 'closed' },
      { timeouts: 0, breaker: 'closed' },
    ]);
    link.bytesPerSecond = Number.POSITIVE_INFINITY;
    await Promise.all(attacks);
  });
});

describe('a large result', () => {
  it('I4: travels over its own connection in both directions, and is replayed as it was stored', async () => {
    const store = newStore();
    await store.begin(idOf('k'), begin);
    const socket = (client as unknown as { stream: Socket }).stream;
    const before = socket.bytesRead + socket.bytesWritten;
    const value = `é${LARGE}`;
    expect(await store.complete(idOf('k'), { ...completing, result: { status: '200', value } })).toEqual({
      kind: 'ok',
    });
    expect(await store.begin(idOf('k'), { ...begin, token: 'b' })).toEqual({
      kind: 'settled',
      result: { status: '200', value },
    });
    expect((await store.inspect(idOf('k')))?.result?.value).toBe(value);
    expect(socket.bytesRead + socket.bytesWritten - before).toBeLessThan(value.length);
    expect(store.stats()).toMatchObject({ timeouts: 0, large: { bytes: 0, timeouts: 0, refused: 0, dropped: 0 } });
  });

  it('I7: that cannot be stored in time: the outcome is stored without it, and it changes nothing when it arrives', async () => {
    const store = newStore({ deadlineMs: 150 });
    await store.begin(idOf('k'), begin);
    wire.delayRequestsMs = 1_000;
    expect(await store.complete(idOf('k'), completing)).toEqual({ kind: 'ok', valueDropped: true });
    const replay = { kind: 'settled', result: { status: '200', value: undefined } };
    expect(await store.begin(idOf('k'), { ...begin, token: 'b' })).toEqual(replay);
    expect(store.stats()).toMatchObject({ timeouts: 0, breaker: 'closed', large: { timeouts: 1, dropped: 1 } });
    await until(() => store.stats().large.bytes === 0, 'the late value has arrived');
    expect(await store.begin(idOf('k'), { ...begin, token: 'b' })).toEqual(replay);
  });

  it('I4: that cannot be read in time: the call says that the claim is completed, and other calls work', async () => {
    const store = newStore({ deadlineMs: 150 });
    await store.complete(idOf('k'), completing);
    wire.delayRequestsMs = 1_000;
    for (let i = 0; i < 6; i++) {
      expect(await failure(store.begin(idOf('k'), { ...begin, token: 'b' }))).toMatchObject({
        code: 'result_unavailable',
      });
      expect(await store.begin(idOf(`other-${i}`), begin)).toMatchObject({ kind: 'claimed' });
    }
    expect(store.stats()).toMatchObject({ timeouts: 0, breaker: 'closed', large: { breaker: 'open' } });
    wire.delayRequestsMs = 0;
    const isRead = async () => (await store.begin(idOf('k'), begin).catch(() => undefined))?.kind === 'settled';
    await until(isRead, 'it can be read again');
  });

  it('I8: whose record is lost while it is asked for: the call claims the key, without a dispatch', async () => {
    const store = newStore();
    await store.complete(idOf('k'), completing);
    wire.delayRequestsMs = 300;
    const reply = store.begin(idOf('k'), { ...begin, token: 'b', dispatch: true });
    await until(() => store.stats().large.bytes > 0, 'the value is asked for');
    await admin.del(claimKey(prefix, 'app', 'k'));
    expect(await reply).toMatchObject({ kind: 'claimed', generation: 1, dispatched: false });
  });

  it('I7: past the budget of its scope: stored without it; the values of another scope are stored', async () => {
    const store = newStore({ largeValues: { client: largeClient, maxBytesPerScope: 2 * LARGE.length } });
    wire.delayRequestsMs = 200;
    const replies = await Promise.all([
      ...['1', '2', '3'].map((key) => store.complete({ scope: 'a', key }, completing)),
      store.complete({ scope: 'b', key: '1' }, completing),
    ]);
    expect(replies.map((reply) => 'valueDropped' in reply)).toEqual([false, false, true, false]);
    expect(store.stats().large).toMatchObject({ refused: 1, dropped: 1, bytes: 0 });
  });

  it('waits in the background for a lost connection, but not for long: the claim is completed without it', async () => {
    const idempotency = createIdempotency({ store: newStore() });
    largeClient.disconnect();
    await until(() => largeClient.status === 'end', 'the connection is closed');
    expect(await idempotency.run('k', 'r', () => LARGE)).toMatchObject({ kind: 'executed', kept: false });
    expect(idempotency.pending).toBe(1);
    await idempotency.idle();
    const never = () => expect.unreachable();
    expect(await idempotency.run('k', 'r', never)).toMatchObject({ kind: 'refused', reason: 'not_kept' });
  });

  it('is stored by the next try in the background if its connection comes back', async () => {
    const idempotency = createIdempotency({ store: newStore() });
    await admin.client('KILL', 'ID', await largeClient.client('ID'));
    await until(() => largeClient.status !== 'ready', 'the client has noticed');
    expect(await idempotency.run('k', 'r', () => LARGE)).toMatchObject({ kind: 'executed', kept: false });
    await idempotency.idle();
    const never = () => expect.unreachable();
    expect(await idempotency.run('k', 'r', never)).toEqual({ kind: 'replayed', value: LARGE });
  });

  it('I4: is stored after an outage, whatever the circuit breaker of large results says then', async () => {
    const idempotency = createIdempotency({ store: newStore() });
    const keys = Array.from({ length: 8 }, (_, i) => `k${i}`);
    let effects = 0;
    let goOn = (): void => {};
    const outage = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    const runs = keys.map((key) =>
      idempotency.run(key, 'r', async () => {
        effects++;
        await outage;
        return LARGE;
      }),
    );
    await until(() => effects === keys.length, 'every operation has begun');
    server.freeze();
    goOn();
    await Promise.all(runs);
    await until(() => false, 'x', 1_500).catch(() => {});
    server.thaw();
    await idempotency.idle();
    const never = () => expect.unreachable();
    const replays = await Promise.all(keys.map((key) => idempotency.run(key, 'r', never)));
    expect(replays.map(({ kind }) => kind)).toEqual(keys.map(() => 'replayed'));
  });

  it('without a second client: the same, over the one connection', async () => {
    const store = newStore({ largeValues: undefined });
    await store.complete(idOf('k'), completing);
    expect(await store.begin(idOf('k'), begin)).toMatchObject({ kind: 'settled', result: { value: LARGE } });
    expect(() => newStore({ largeValues: { maxBytesPerScope: -1 } })).toThrow('largeValues.maxBytesPerScope');
    expect(() => newStore({ largeValues: { client: {} as never } })).toThrow('largeValues.client');
    expect(() => newStore({ largeValues: { other: 1 } as never })).toThrow('largeValues.other');
  });
});
