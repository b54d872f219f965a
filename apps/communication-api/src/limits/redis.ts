import { setTimeout as pause } from 'node:timers/promises';
import { Redis } from 'ioredis';
import type { Logger } from 'pino';

const CONNECT_MS = 5_000;

/**
 * Connects to Redis. If Redis is away or does not answer, the client connects later by itself, and commands fail at once
 * until then.
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
