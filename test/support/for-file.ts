import { afterAll, beforeEach } from 'vitest';
import { type Config, type Gateway, startGateway } from './gateway.ts';
import { type RedisServer, startRedis } from './redis-server.ts';
import { startUpstream, type Upstream } from './upstream.ts';

/**
 * Starts an upstream and a gateway process in front of it for the tests of a file. Await it at the top of the file.
 * Before each test the upstream is as at its start.
 * @param configFor makes the config from the URL of the upstream and from `rest`, such as `configOf`
 */
export async function gatewayForFile(
  configFor: (upstream: string, rest?: Config) => Config,
  rest?: Config,
): Promise<{ readonly upstream: Upstream; readonly gateway: Gateway }> {
  const upstream = await startUpstream();
  const gateway = await startGateway(configFor(upstream.url, rest));
  afterAll(() => gateway.stop());
  beforeEach(() => upstream.reset());
  return { upstream, gateway };
}

/** Starts a Redis server for the tests of a file. Await it at the top of the file. */
export async function redisForFile(): Promise<RedisServer> {
  const redis = await startRedis();
  afterAll(() => redis.stop());
  return redis;
}
