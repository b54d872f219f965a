import { afterAll, beforeAll } from 'vitest';
import { createRedisStore } from '../../src/stores/redis/limits.ts';
import type { LimitStoreSubject } from '../../src/testing/limit-store-suite.ts';
import type { Connect, ConnectedClient } from './redis-clients.ts';

/** Number of random histories for one subject. HEADGATE_RUNS multiplies it, as in `npm run test:long`. */
export const histories = (ordinarily: number): number => ordinarily * Number(process.env.HEADGATE_RUNS ?? 1);

let stores = 0;

/** Creates stores on one of `clients`, which is connected before the tests of the file, and disconnected after them. */
export function redisSubject<Where>(
  clients: Record<string, Connect<Where>>,
  name: string,
  where: Where,
  ordinarily: number,
): LimitStoreSubject {
  let connected: ConnectedClient;
  beforeAll(async () => {
    connected = await (clients[name] as Connect<Where>)(where);
  });
  afterAll(() => connected.disconnect());
  return {
    name,
    histories: histories(ordinarily),
    create: (clock) =>
      createRedisStore(connected.client, { clock, prefix: `test-${process.pid}-${stores++}`, deadlineMs: 10_000 }),
  };
}
