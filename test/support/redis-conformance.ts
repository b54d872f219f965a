import { afterAll, beforeAll } from 'vitest';
import { createRedisStore } from '../../src/stores/redis/limits.ts';
import type { LimitStoreSubject } from '../../src/testing/limit-store-suite.ts';
import type { Connect, ConnectedClient } from './redis-clients.ts';

/** Random histories for one subject: more of them with HEADGATE_RUNS, as `npm run test:long` does it. */
export const histories = (ordinarily: number): number => ordinarily * Number(process.env.HEADGATE_RUNS ?? 1);

let stores = 0;

/** Stores on one of `clients`, which is connected while the test file runs. */
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
