/** How much is accepted above a limit after Redis has lost its data: exactly what docs/redis.md says. */

import { tell } from 'headgate-testbed/redis-cluster';
import { startRedis, until } from 'headgate-testbed/redis-server';
import { expect, it } from 'vitest';
import { parseLimit } from '../../../src/core/limit.ts';
import { createWindowSet } from '../../../src/core/window-set.ts';
import { createRedisStore } from '../../../src/stores/redis/limits.ts';
import { CLIENTS, type Connect } from '../../support/redis-clients.ts';

const MAX = 5;
const PROCESSES = 2;
const connect = CLIENTS['ioredis that fails fast'] as Connect<number>;
const windowSet = createWindowSet([], parseLimit([`${MAX}/1h`]));

it('S17: with local, each loss and each process admit the max once more, and no second outage does', async ({
  onTestFinished,
}) => {
  const server = await startRedis();
  onTestFinished(() => server.stop());
  const stores = await Promise.all(
    Array.from({ length: PROCESSES }, async () => {
      const { client, disconnect } = await connect(server.port);
      onTestFinished(() => disconnect());
      return createRedisStore(client, { deadlineMs: 1_000, onStoreFailure: 'local', denyCacheMaxMs: 0 });
    }),
  );
  /** How many of too many requests each store accepts. */
  const accepted = async (): Promise<number[]> => {
    const counts: number[] = [];
    for (const store of stores) {
      const requests = Array.from({ length: 2 * MAX }, () => store.consume('acc', 'GET /', windowSet, 1));
      const decisions = await Promise.all(requests);
      counts.push(decisions.filter((decision) => decision.accepted).length);
    }
    return counts;
  };
  const becomes = (degraded: boolean): Promise<unknown> =>
    Promise.all(
      stores.map((store) =>
        until(async () => (await store.consume('other', 'GET /', windowSet, 1)).degraded === degraded, `${degraded}`),
      ),
    );
  expect(await accepted()).toEqual([MAX, 0]);
  await tell(server.port, 'FLUSHALL');
  expect(await accepted()).toEqual([MAX, 0]);
  await server.kill();
  await becomes(true);
  expect(await accepted()).toEqual([MAX, MAX]);
  await server.restart();
  await becomes(false);
  expect(await accepted()).toEqual([MAX, 0]);
  server.freeze();
  await becomes(true);
  expect(await accepted()).toEqual([0, 0]);
  server.thaw();
  await becomes(false);
  expect(await accepted()).toEqual([0, 0]);
});
