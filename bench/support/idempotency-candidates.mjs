// What is measured: one operation executed once per key, as each package's own documentation says, with a store in
// memory or on Redis.
import { hash } from 'node:crypto';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { requirePeer } from 'headgate-bench/peers';
import { expressIdempotency } from './idempotency-express.mjs';

const DAY_S = 86_400;

/**
 * By name, a function that makes an empty store: on `connection`, or in memory if it is undefined. It returns
 * `call(key, body, operation)`, which resolves to the operation's value, from this call or from an earlier one. `body`
 * is `{ text, object }`.
 */
export const CANDIDATES = {
  /**
   * The least work: one look-up and one SHA-256 of the body; on Redis, the fewest commands that claim and store,
   * unchecked.
   */
  floor(connection) {
    return connection === undefined ? memoryFloor() : connection.floor();
  },

  async headgate(connection) {
    return headgate(connection, 'headgate', await ours(), ({ text }) => text);
  },

  /** The body is passed as the object that a framework has parsed, as it is passed to the peers. */
  async 'headgate, parsed'(connection) {
    return headgate(connection, 'parsed', await ours(), ({ object }) => object);
  },

  /** The operation calls `dispatch()` itself, just before its effect. */
  async 'headgate, explicit'(connection) {
    return headgate(connection, 'explicit', await ours(), ({ text }) => text, { dispatch: 'explicit' });
  },

  /** Another build of headgate, from its dist folder. */
  async against(connection, against) {
    const load = (file) => import(pathToFileURL(resolve(against, file)));
    const theirs = { index: await load('index.js'), memory: await load('memory.js'), redis: await load('redis.js') };
    return headgate(connection, 'against', theirs, ({ text }) => text);
  },

  async 'node-idempotency'(connection) {
    const { Idempotency } = requirePeer('@node-idempotency/core');
    const idempotency = new Idempotency(storageOf(connection), { cacheTTLMS: DAY_S * 1_000 });
    return async (key, { object }, operation) => {
      const request = { method: 'POST', path: '/api/v1/emails', headers: { 'idempotency-key': key }, body: object };
      const kept = await idempotency.onRequest(request);
      if (kept !== undefined) return kept.body;
      const value = await operation();
      await idempotency.onResponse(request, { body: value });
      return value;
    };
  },

  /**
   * Its cache persistence layer loses the payload's hash when it stores an outcome. Payload validation is off, because
   * it would reject every replay.
   */
  powertools(connection) {
    const { IdempotencyConfig, makeIdempotent } = requirePeer('@aws-lambda-powertools/idempotency');
    const { CachePersistenceLayer } = requirePeer('@aws-lambda-powertools/idempotency/cache');
    const persistenceStore = new CachePersistenceLayer({ client: connection?.client ?? mapClient() });
    const config = new IdempotencyConfig({ eventKeyJmesPath: 'key', expiresAfterSeconds: DAY_S });
    const context = { getRemainingTimeInMillis: () => 30_000 };
    const handler = async ({ operation }) => operation();
    const guarded = makeIdempotent(handler, { persistenceStore, config, keyPrefix: 'powertools' });
    return (key, { object }, operation) => guarded({ key, body: object, operation }, context);
  },

  'express-idempotency': () => expressIdempotency(),
};

async function ours() {
  return {
    index: await import('headgate'),
    memory: await import('headgate/memory'),
    redis: await import('headgate/redis'),
  };
}

function headgate(connection, prefix, { index, memory, redis }, requestOf, options) {
  const store =
    connection === undefined
      ? memory.createMemoryClaimStore()
      : redis.createRedisClaimStore(connection.client, { prefix, deadlineMs: 10_000 });
  const idempotency = index.createIdempotency({ store });
  const isExplicit = options?.dispatch === 'explicit';
  return async (key, body, operation) => {
    const effect = isExplicit ? (context) => context.dispatch().then(operation) : operation;
    const result = await idempotency.run(key, requestOf(body), effect, options);
    if (result.kind !== 'executed' && result.kind !== 'replayed')
      throw new Error(`headgate: ${JSON.stringify(result)}`);
    return result.value;
  };
}

function memoryFloor() {
  const kept = new Map();
  return async (key, { text }, operation) => {
    const found = kept.get(key);
    const fingerprint = hash('sha256', text, 'hex');
    if (found !== undefined) {
      if (found.fingerprint !== fingerprint) throw new Error('another request');
      return found.value;
    }
    const value = await operation();
    kept.set(key, { fingerprint, value });
    return value;
  };
}

function storageOf(connection) {
  if (connection === undefined) {
    const { MemoryStorageAdapter } = requirePeer('@node-idempotency/storage-adapter-memory');
    return new MemoryStorageAdapter();
  }
  const { RedisStorageAdapter } = requirePeer('@node-idempotency/storage-adapter-redis');
  // The adapter's own client is never connected; the row's client replaces it.
  return Object.assign(new RedisStorageAdapter({}), { client: connection.client });
}

/** An in-memory client with the Redis commands that the persistence layer uses. */
function mapClient() {
  const values = new Map();
  return {
    get: async (key) => values.get(key) ?? null,
    async set(key, value, { NX } = {}) {
      if (NX && values.has(key)) return null;
      values.set(key, value);
      return 'OK';
    },
    del: async (keys) => keys.filter((key) => values.delete(key)).length,
  };
}
