import { setTimeout as pause } from 'node:timers/promises';
import { Redis } from 'ioredis';
import type { Logger } from 'pino';

const CONNECT_MS = 5_000;

/**
 * Connects to Redis. If Redis is away or does not answer, the client connects later by itself, and commands fail at
 * once until then.
 * @param url `redis://` or `rediss://`
 */
export async function connectRedis(url: string, log: Pick<Logger, 'warn'>, connectMs = CONNECT_MS): Promise<Redis> {
  const redis = new Redis(url, {
    lazyConnect: true,
    // The client must not repeat a command on its own: the first one may have been counted.
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
  });
  redis.on('error', (error) => log.warn({ err: error }, 'the connection to Redis failed'));
  const connected = redis.connect().catch(() => undefined);
  // A frozen server accepts the connection, and says nothing.
  await Promise.race([connected, pause(connectMs, undefined, { ref: false })]);
  return redis;
}

/** How Redis treats its data. Undefined: the server does not say, like some hosted servers. */
export interface RedisSettings {
  readonly evictionPolicy: string | undefined;
  /** In bytes; 0: as much as it needs. */
  readonly maxMemory: number;
  /** Whether it stores its data on disk. */
  readonly persists: boolean | undefined;
}

/** Reads the settings of the server from its figures, which also users without rights for its settings may read. */
export async function settingsOf(redis: Redis): Promise<RedisSettings> {
  const memory = await redis.info('memory').catch(() => '');
  const evictionPolicy = /^maxmemory_policy:(\S+)/m.exec(memory)?.[1];
  const maxMemory = Number(/^maxmemory:(\d+)/m.exec(memory)?.[1] ?? 0);
  const isAppendOnly = /^aof_enabled:1/m.test(await redis.info('persistence').catch(() => ''));
  // A server without `save` points never writes a snapshot by itself.
  const saves = await redis.config('GET', 'save').then(
    (pair) => (pair as readonly string[])[1] !== '',
    () => undefined,
  );
  return { evictionPolicy, maxMemory, persists: isAppendOnly || saves };
}
