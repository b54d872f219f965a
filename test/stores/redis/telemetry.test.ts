import { tracingChannel } from 'node:diagnostics_channel';
import { trace } from '@opentelemetry/api';
import { afterFile } from 'headgate-testbed/after-file';
import { startFakeRedis } from 'headgate-testbed/fake-redis';
import { recordTelemetry } from 'headgate-testbed/telemetry';
import { Redis } from 'ioredis';
import { afterEach, beforeAll, expect, inject, it } from 'vitest';
import { createLimiter } from '../../../src/index.ts';
import { instrument } from '../../../src/otel/instrument.ts';
import {
  createRedisAdjustments,
  createRedisClaimStore,
  createRedisStore,
  STORE_CHANNEL,
  type StoreCall,
} from '../../../src/redis.ts';
import { createSharedLimits } from '../../../src/shared-limits/index.ts';

const telemetry = recordTelemetry();
const { tracerProvider, meterProvider, spans, measured, inSpan } = telemetry;
const prefix = `telemetry-${process.pid}`;
let client: Redis;
let running = { disable() {} };

beforeAll(async () => {
  client = new Redis({ port: inject('redis').port, host: '127.0.0.1', lazyConnect: true });
  await client.connect();
  afterFile(() => client.disconnect());
});

afterEach(() => {
  running.disable();
  spans.length = 0;
  measured.length = 0;
});

const start = () => {
  running = instrument({ tracerProvider, meterProvider });
};
const storeSpans = () => spans.filter(({ name }) => name.startsWith('headgate.store'));

it('each call is a child of the request that made it, also if one script answers several requests', async () => {
  start();
  const limiter = createLimiter({ store: createRedisStore(client, { prefix }), limits: { allMethods: ['2/1m'] } });
  const consume = (account: string, route = 'r') =>
    inSpan(`${account} ${route}`, () => limiter.consume({ account, route }));
  await Promise.all([consume('a'), consume('a', 's'), consume('b'), consume('a')]);
  expect(storeSpans().map(({ parent }) => parent)).toEqual(['a r', 'a s', 'b r', 'a r']);
  for (const span of storeSpans()) {
    expect(span).toMatchObject({ name: 'headgate.store consume', isEnded: true, isError: false });
    expect(span.attributes).toEqual({
      'db.system.name': 'redis',
      'headgate.store': 'limits',
      'headgate.store.operation': 'consume',
    });
  }
  // A rejection is cached, so that the next one does not leave the process.
  await consume('a');
  spans.length = 0;
  await consume('a');
  expect(storeSpans()).toEqual([]);
});

it('every other method of a store is a call as well', async () => {
  start();
  const store = createRedisStore(client, { prefix });
  const limiter = createLimiter({ store, limits: { allMethods: ['2/1m'] } });
  const subject = { account: 'm', route: 'r' };
  const decision = await limiter.consume(subject);
  await limiter.peek(subject);
  await limiter.settle(decision, 2);
  await store.block({ account: 'm' }, { forMs: 1_000, reason: 'x' });
  await store.blocked({ account: 'm' });
  await store.unblock({ account: 'm' });
  await limiter.reset(subject);
  expect(measured.map(({ attributes }) => attributes['headgate.store.operation'])).toEqual([
    'consume',
    'peek',
    'settle',
    'block',
    'blocked',
    'unblock',
    'reset',
  ]);
  expect(measured.every(({ name, value }) => name === 'headgate.store.duration' && value > 0 && value < 1)).toBe(true);
});

it('commands about idempotency keys are named; a stored response is not on the channel', async () => {
  start();
  const calls: StoreCall[] = [];
  const listener = { asyncEnd: (call: unknown) => void calls.push(call as StoreCall) };
  const channel = tracingChannel('headgate:store');
  channel.asyncEnd.subscribe(listener.asyncEnd);
  const claims = createRedisClaimStore(client, { prefix });
  const id = { scope: 's', key: `k-${Math.random()}` };
  const base = { token: 't', fingerprint: 'f', retentionMs: 60_000 };
  const begin = () => claims.begin(id, { ...base, leaseMs: 5_000, onOrphan: 'reject', dispatch: true });
  await begin();
  const value = `SECRET${'x'.repeat(20_000)}`;
  await claims.complete(id, { ...base, generation: 1, result: { status: '200', value } } as never);
  const replay = await claims.begin(id, { ...base, token: 'u', leaseMs: 5_000, onOrphan: 'reject', dispatch: true });
  channel.asyncEnd.unsubscribe(listener.asyncEnd);
  expect(JSON.stringify(replay)).toContain('SECRET');
  expect(calls.map(({ store, operation }) => `${store} ${operation}`)).toEqual([
    'claims begin',
    'large_values complete',
    'claims begin',
    'large_values begin',
  ]);
  expect(JSON.stringify([calls, spans, measured])).not.toContain('SECRET');
});

it('calls about adjustments are named; the readings that go on by themselves have no span, and no context of a change', async () => {
  start();
  const contexts: unknown[] = [];
  const channel = tracingChannel(STORE_CHANNEL);
  const onCall = (call: unknown) => {
    if ((call as StoreCall).operation === 'read') contexts.push(trace.getActiveSpan());
  };
  const base = { allMethods: ['2/1m'] };
  const adjustments = createRedisAdjustments(client, { prefix });
  const limits = createSharedLimits({ base, adjustments, refreshMs: 10, logger: false });
  await limits.ready();
  await inSpan('change', () => limits.put({ account: 'a' }, ['3/1m'], { by: 'jane' }));
  expect(storeSpans()).toMatchObject([
    { name: 'headgate.store append', parent: 'change', attributes: { 'headgate.store': 'adjustments' } },
  ]);
  channel.start.subscribe(onCall);
  await expect.poll(() => contexts.length).toBeGreaterThan(1);
  channel.start.unsubscribe(onCall);
  expect(contexts.filter((span) => span !== undefined)).toEqual([]);
  await limits.history();
  await limits.instances();
  await limits.close();
  await adjustments.restore(
    { version: 7, nonce: 'x' },
    { head: { version: 1, nonce: 'n' }, adjustments: [], recent: [] },
  );
  const operations = measured.map(({ attributes }) => attributes['headgate.store.operation']);
  expect([...new Set(operations)].sort()).toEqual(['append', 'history', 'instances', 'read', 'restore']);
  expect(telemetry.gauge('headgate.store.breaker')).toContainEqual(
    expect.objectContaining({ value: 0, attributes: { 'headgate.store': 'adjustments' } }),
  );
});

it('while Redis is away, a call has the type of its error, and the circuit breaker shows in the gauge', async () => {
  start();
  const away = new Redis({ port: 1, host: '127.0.0.1', lazyConnect: true, retryStrategy: () => null });
  await away
    .on('error', () => {})
    .connect()
    .catch(() => {});
  const store = createRedisStore(away, { prefix, logger: false });
  const limiter = createLimiter({ store, limits: { allMethods: ['2/1m'] } });
  const decision = await limiter.consume({ account: 'a', route: 'r' });
  expect(decision.degraded).toBe(true);
  expect(storeSpans()).toEqual([
    expect.objectContaining({
      isError: true,
      attributes: expect.objectContaining({ 'error.type': 'store_unavailable' }),
    }),
  ]);
  expect(measured[0]?.attributes['error.type']).toBe('store_unavailable');
  const breaker = () =>
    telemetry.gauge('headgate.store.breaker').find(({ attributes }) => attributes['headgate.store'] === 'limits')
      ?.value;
  expect(breaker()).toBe(0);
  for (let i = 0; i < 4; i++) await limiter.consume({ account: 'a', route: 'r' });
  expect(breaker()).toBe(2);
  running.disable();
  expect(breaker()).toBeUndefined();
});

it('publishes nothing, and keeps no call, if nothing listens', async () => {
  const store = createRedisStore(client, { prefix });
  await createLimiter({ store, limits: { allMethods: ['2/1m'] } }).consume({ account: 'n', route: 'r' });
  expect([spans, measured]).toEqual([[], []]);
});

it('a call without an answer has the type of its error, and names no account', async () => {
  start();
  const port = await startFakeRedis(([name]) => (name === 'evalsha' ? '' : undefined));
  const silent = new Redis({ port, host: '127.0.0.1', lazyConnect: true });
  await silent.connect();
  const store = createRedisStore(silent, { prefix, logger: false, deadlineMs: 20 });
  const limiter = createLimiter({ store, limits: { allMethods: ['2/1m'] } });
  const decision = await limiter.consume({ account: 'acc_secret', route: 'r' });
  silent.disconnect();
  expect(decision.degraded).toBe(true);
  expect(storeSpans()[0]?.attributes['error.type']).toBe('store_timeout');
  expect(JSON.stringify([spans, measured])).not.toContain('acc_secret');
});
