import { Redis } from 'ioredis';
import type { Logger } from 'pino';

/**
 * Connects to Redis. If Redis is away, the client connects later by itself, and commands fail at once until then.
 * @param url `redis://` or `rediss://`
 */
export async function connectRedis(url: string, log: Pick<Logger, 'warn'>): Promise<Redis> {
  const redis = new Redis(url, {
    lazyConnect: true,
    // The client must not repeat a command on its own: the first one may have been counted.
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
  });
  redis.on('error', (error) => log.warn({ err: error }, 'the connection to Redis failed'));
  await redis.connect().catch(() => undefined);
  return redis;
}
