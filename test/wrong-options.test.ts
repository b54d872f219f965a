import { Redis } from 'ioredis';
import { expect, it } from 'vitest';
import { createClientIp } from '../src/address/client-ip.ts';
import { fetchWithRetry } from '../src/client/fetch-with-retry.ts';
import { createFileAdjustments } from '../src/file.ts';
import { createFingerprinter } from '../src/http/index.ts';
import { createGate, createIdempotency, createLimiter } from '../src/index.ts';
import { createMemoryAdjustments, createMemoryClaimStore, createMemoryStore } from '../src/memory.ts';
import { instrument } from '../src/otel/instrument.ts';
import { createRedisAdjustments, createRedisClaimStore, createRedisStore } from '../src/redis.ts';
import { withShadow } from '../src/shadow/shadow.ts';
import { createSharedLimits } from '../src/shared-limits/index.ts';
import { createJobWorker } from '../src/waiting/index.ts';
import { NOT_OPTIONS } from './support/not-options.ts';

type Call = (options: never) => unknown;

const limits = { allMethods: ['60/1m'] };
const limiter = createLimiter({ store: createMemoryStore(), limits });
const worker = createJobWorker(limiter);
const idempotency = createIdempotency({ store: createMemoryClaimStore() });
const adjustments = createMemoryAdjustments();
/** Never connects. */
const client = new Redis({ lazyConnect: true });
const subject = { account: 'a', route: 'r' };
const gateOptions = { limiter, account: () => 'a', route: () => 'r' };

const OBJECTS: Record<string, Call> = {
  createClientIp,
  createFileAdjustments: (options) => createFileAdjustments('unused', options),
  createFingerprinter: (options) => createFingerprinter({ method: 'GET', path: '/' }, options),
  createGate,
  createIdempotency,
  createJobWorker: (options) => createJobWorker(limiter, options),
  createLimiter,
  createMemoryAdjustments,
  createMemoryClaimStore,
  createMemoryStore,
  createRedisAdjustments: (options) => createRedisAdjustments(client, options),
  createRedisClaimStore: (options) => createRedisClaimStore(client, options),
  'createRedisClaimStore: largeValues': (largeValues) => createRedisClaimStore(client, { largeValues }),
  createRedisStore: (options) => createRedisStore(client, options),
  createSharedLimits,
  fetchWithRetry: (options) => fetchWithRetry('http://127.0.0.1:9', {}, options),
  'idempotency.close': (options) => createIdempotency({ store: createMemoryClaimStore() }).close(options),
  'idempotency.release': (options) => idempotency.release({ scope: 's', key: 'k' }, options),
  'idempotency.run': (options) => idempotency.run('k', 'request', () => 'done', options),
  instrument,
  'limiter.reset': (target) => limiter.reset(target),
  withShadow: (options) => withShadow(limiter, options),
  'worker.acquire': (options) => worker.acquire(subject, options),
};

const refused = (option: string) => ({
  code: 'invalid_option',
  message: expect.stringMatching(`^(options\\.)?${option}`),
});

it.each(Object.entries(OBJECTS))(
  '%s refuses options that are not a plain object, and unknown names',
  async (_, call) => {
    for (const [name, options] of NOT_OPTIONS) {
      const calling = async () => call(options as never);
      await expect(calling(), name).rejects.toMatchObject(refused('\\w+: must be a plain object'));
    }
    const calling = async () => call({ unheardOf: 1 } as never);
    await expect(calling()).rejects.toMatchObject(
      refused('\\w+\\.unheardOf: unknown option|unheardOf: unknown option'),
    );
  },
);

const run = (options: object) => idempotency.run('k', 'request', () => 'done', options);
const retry = (options: object) => fetchWithRetry('http://127.0.0.1:9', {}, options);
const IDEMPOTENCY = { store: createMemoryClaimStore() };

/** Options whose wrong value would otherwise show late, or never. */
const VALUES: Record<string, Call> = {
  'fetchWithRetry: fetch': (fetch) => retry({ fetch }),
  'fetchWithRetry: key': (key) => retry({ key }),
  'fetchWithRetry: onRetry': (onRetry) => retry({ onRetry }),
  'fetchWithRetry: random': (random) => retry({ random }),
  'fetchWithRetry: retries': (retries) => retry({ retries }),
  'gate: idempotency': (given) => createGate({ ...gateOptions, idempotency: given, idempotent: () => undefined }),
  'gate: onEvent': (onEvent) => createGate({ ...gateOptions, onEvent }),
  'idempotency: onEvent': (onEvent) => createIdempotency({ ...IDEMPOTENCY, onEvent }),
  'idempotency: reconcile': (reconcile) => createIdempotency({ ...IDEMPOTENCY, reconcile }),
  'idempotency: store': (store) => createIdempotency({ store }),
  'idempotency: timers': (timers) => createIdempotency({ ...IDEMPOTENCY, timers }),
  'close: timeoutMs': (timeoutMs) => createIdempotency(IDEMPOTENCY).close({ timeoutMs }),
  'release: force': (force) => idempotency.release({ scope: 's', key: 'k' }, { force }),
  'run: deserialize': (deserialize) => run({ deserialize }),
  'run: serialize': (serialize) => run({ serialize }),
  'run: signal': (signal) => run({ signal }),
  'limiter: store': (store) => createLimiter({ store, limits }),
  'redis: client': (given) => createRedisStore(given),
  'redis: clock': (clock) => createRedisStore(client, { clock }),
  'redis: onStoreFailure': (onStoreFailure) => createRedisStore(client, { onStoreFailure }),
  'redis: onStoreFailure.local': (local) => createRedisStore(client, { onStoreFailure: { local } }),
  'redis: onStoreFailure.local.share': (share) => createRedisStore(client, { onStoreFailure: { local: { share } } }),
  'redis: onError': (onError) => createRedisStore(client, { onError }),
  'redis claims: clock': (clock) => createRedisClaimStore(client, { clock }),
  'redis claims: onError': (onError) => createRedisClaimStore(client, { onError }),
  'redis adjustments: clock': (clock) => createRedisAdjustments(client, { clock }),
  'redis adjustments: onError': (onError) => createRedisAdjustments(client, { onError }),
  'route: requireKey': (requireKey) => createGate(gateOptions).with({ requireKey }),
  'shadow: onDecision': (onDecision) => withShadow(limiter, { store: createMemoryStore(), limits, onDecision }),
  'shadow: store': (store) => withShadow(limiter, { store, limits }),
  'shared limits: adjustments': (given) => createSharedLimits({ base: limits, adjustments: given }),
  'shared limits: keptFile': (keptFile) => createSharedLimits({ base: limits, adjustments, keptFile }),
  'shared limits: onEvent': (onEvent) => createSharedLimits({ base: limits, adjustments, onEvent }),
  'worker: timers': (timers) => createJobWorker(limiter, { timers }),
};
const WRONG = [null, Number.NaN, '', [], new Map(), Promise.resolve({})];

it.each(Object.entries(VALUES))('%s refuses a value of another type', async (name, call) => {
  for (const value of WRONG) {
    const calling = async () => call(value as never);
    await expect(calling(), String(value)).rejects.toMatchObject(refused(`${name.split(': ')[1]}: `));
  }
});
