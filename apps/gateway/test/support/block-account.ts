import type { Block, BlockTarget } from 'headgate/limits';
import { createRedisStore } from 'headgate/redis';
import { Redis } from 'ioredis';

/** Blocks an account, as a program with the same Redis does. */
export async function blockAccount(redisPort: number, target: BlockTarget, block: Block): Promise<void> {
  const client = new Redis({ port: redisPort, host: '127.0.0.1' });
  await client.ping();
  await createRedisStore(client, { deadlineMs: 10_000 }).block(target, block);
  client.disconnect();
}
