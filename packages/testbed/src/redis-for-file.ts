import { afterAll } from 'vitest';
import { type RedisServer, startRedis } from './redis-server.ts';

/** Starts a Redis server for the tests of a file. Await it at the top of the file. */
export async function redisForFile(): Promise<RedisServer> {
  const redis = await startRedis();
  afterAll(() => redis.stop());
  return redis;
}
