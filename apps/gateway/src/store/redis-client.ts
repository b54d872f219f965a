import { Cluster, Redis, type RedisOptions } from 'ioredis';
import { within } from '../base/within.ts';
import type { RedisUrl } from '../config/store-url.ts';
import { RedisConnector } from './redis-connector.ts';
import { sharedLookup } from './shared-lookup.ts';

const CONNECT_MS = 2_000;
const MAX_RETRY_DELAY_MS = 1_000;

/** Options of {@link createRedisClient}. */
export interface RedisClientOptions {
  /**
   * Longest silence while a command waits for its answer, in milliseconds. After it the client connects again. A host
   * that vanishes closes no connection, and without this the system would send to it for a quarter of an hour.
   * @default 5_000
   */
  readonly silenceMs?: number;
}

/**
 * A client that never queues a command and never sends one twice: a check that was given up must not arrive after the
 * outage, and one that may have been counted must not be counted again. It connects, and reconnects, until it is
 * disconnected. It also reconnects if a server replies that it is a replica, or does not answer at all.
 * @param onError called with errors of the connection
 */
export function createRedisClient(
  url: RedisUrl,
  onError: (error: Error) => void,
  { silenceMs = 5_000 }: RedisClientOptions = {},
): Redis | Cluster {
  const retryStrategy = (times: number): number => Math.min(MAX_RETRY_DELAY_MS, times * 50);
  const options = {
    ...(url.username === undefined ? {} : { username: url.username }),
    ...(url.password === undefined ? {} : { password: url.password }),
    Connector: RedisConnector,
    connectTimeout: CONNECT_MS,
    socketTimeout: silenceMs,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    retryStrategy,
    // `true` reconnects and fails the command. 2 would send it again.
    reconnectOnError: isFromReplica,
  } satisfies RedisOptions;
  const client =
    url.kind === 'redis'
      ? new Redis({ ...options, ...url.node, db: url.db, ...(url.tls ? { tls: {} } : {}) })
      : new Cluster([...url.nodes], {
          redisOptions: options,
          dnsLookup: (name, callback) =>
            sharedLookup(name, {}, (error, address) => callback(error ?? undefined, address as string)),
          enableOfflineQueue: false,
          clusterRetryStrategy: retryStrategy,
          // Only MOVED and ASK are followed. They say that the command was not executed.
          retryDelayOnFailover: 0,
          retryDelayOnClusterDown: 0,
          slotsRefreshTimeout: CONNECT_MS,
        });
  client.on('error', onError);
  return client;
}

/**
 * Whether a server replied that it is a replica. After a failover the name of the master leads to another server, so
 * the client must resolve it again. In Redis 6 the reply of a script starts with a prefix.
 */
function isFromReplica({ message }: Error): boolean {
  return /^READONLY|@user_script: ?(\d+: )?-?READONLY/.test(message);
}

/**
 * Resolves when the client is connected, when its first attempt fails, or after `ms`. Returns whether it is connected.
 */
export async function connected(client: Redis | Cluster, ms: number): Promise<boolean> {
  const failed = new Promise<never>((_, reject) => void client.once('error', reject));
  return within(ms, Promise.race([connect(client), failed]));
}

async function connect(client: Redis | Cluster): Promise<void> {
  if (client.status !== 'ready') await new Promise((resolve) => client.once('ready', resolve));
  // A cluster client connects to a master only with the first command for it, and that command would be late.
  if (client instanceof Cluster) await Promise.allSettled(client.nodes('master').map((node) => node.ping()));
}

/** Whether the server answers now, within `ms`. */
export async function answers(client: Redis | Cluster, ms: number): Promise<boolean> {
  return client.status === 'ready' && within(ms, client.ping());
}
