import { Redis } from 'ioredis';
import { createClient } from 'redis';
import type { RedisClient } from '../../src/stores/redis/client.ts';

/** A client as its users configure it, connected, and how to let go of it. */
export interface ConnectedClient {
  readonly client: RedisClient;
  disconnect(): void;
}

/** Connects to a port of loopback. Errors of the connection are the store's affair: here nobody logs them. */
export const CLIENTS: Record<string, (port: number) => Promise<ConnectedClient>> = {
  'ioredis by default': (port) => ioredis(port, {}),
  'ioredis that fails fast': (port) =>
    ioredis(port, { enableOfflineQueue: false, maxRetriesPerRequest: 0, autoResendUnfulfilledCommands: false }),
  'node-redis by default': (port) => nodeRedis(port, {}),
  'node-redis that fails fast': (port) => nodeRedis(port, { disableOfflineQueue: true }),
};

async function ioredis(port: number, options: object): Promise<ConnectedClient> {
  const client = new Redis({ port, host: '127.0.0.1', ...options });
  client.on('error', () => {});
  if (client.status !== 'ready') await new Promise((resolve) => client.once('ready', resolve));
  return { client, disconnect: () => client.disconnect() };
}

async function nodeRedis(port: number, options: object): Promise<ConnectedClient> {
  const client = createClient({ url: `redis://127.0.0.1:${port}`, ...options });
  client.on('error', () => {});
  await client.connect();
  return { client: client as unknown as RedisClient, disconnect: () => client.destroy() };
}
