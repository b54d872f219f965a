import { NIGHTLY } from 'headgate-testbed/nightly';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createRedisAdjustments } from '../../src/shared-limits/stores/redis.ts';
import type { RedisClient } from '../../src/stores/redis/client.ts';
import { createRedisStore } from '../../src/stores/redis/limits.ts';
import { createFakeClock, type FakeClock } from '../../src/testing/fake-clock.ts';
import type { LimitStoreSubject } from '../../src/testing/limit-store-suite.ts';
import type { AdjustmentStoreSubject } from './adjustment-suite/suite.ts';
import type { Connect, ConnectedClient } from './redis-clients.ts';
import { windowSetFrom } from './window-set.ts';

/**
 * Number of random histories for one subject: all at night, and a sixth for a change. HEADGATE_RUNS multiplies it, as in
 * `npm run test:long`.
 */
export const histories = (nightly: number): number =>
  Math.ceil(nightly * (NIGHTLY ? 1 : 1 / 6) * Number(process.env.HEADGATE_RUNS ?? 1));

let stores = 0;

/** One of `clients`, which is connected before the tests of the file, and disconnected after them. */
function connectedTo<Where>(clients: Record<string, Connect<Where>>, name: string, where: Where): () => RedisClient {
  let connected: ConnectedClient;
  beforeAll(async () => {
    connected = await (clients[name] as Connect<Where>)(where);
  });
  afterAll(() => connected.disconnect());
  return () => connected.client;
}

const newOptions = (clock: FakeClock) => ({ clock, prefix: `test-${process.pid}-${stores++}`, deadlineMs: 10_000 });

/** Creates stores of limits on one of `clients`. */
export function redisSubject<Where>(
  clients: Record<string, Connect<Where>>,
  name: string,
  where: Where,
  ordinarily: number,
): LimitStoreSubject {
  const client = connectedTo(clients, name, where);
  const create = (clock: FakeClock) => createRedisStore(client(), newOptions(clock));
  // No rule says so, and a store with several connections cannot keep it. A client of Redis has one per server.
  it(`S4: ${name} decides requests that come at once in the order of the calls`, async () => {
    const store = create(createFakeClock(1_000));
    const decisions = await Promise.all(
      Array.from({ length: 10 }, () => store.consume('a', 'r', windowSetFrom(['7/1m'], ['9/1d']), 1)),
    );
    expect(decisions.map(({ shown }) => shown?.remaining)).toEqual([8, 7, 6, 5, 4, 3, 2, 0, 0, 0]);
  });
  return { name, histories: histories(ordinarily), create };
}

/** Creates stores of adjustments on one of `clients`. */
export function redisAdjustmentsSubject<Where>(
  clients: Record<string, Connect<Where>>,
  name: string,
  where: Where,
): AdjustmentStoreSubject {
  const client = connectedTo(clients, name, where);
  return { name, histories: histories(30), create: (clock) => createRedisAdjustments(client(), newOptions(clock)) };
}
