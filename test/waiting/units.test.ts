/** S33: jobs that cost several units wait for room in each of them. */
import { expect, it } from 'vitest';
import { createLimiter } from '../../src/limits/limiter.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';
import { createJobWorker } from '../../src/waiting/index.ts';
import { createFakeTimers } from '../support/fake-timers.ts';

const COST = { requests: 1, tokens: 400 };

function setUp(limits = ['9/1s', '1000 tokens/10s']) {
  const timers = createFakeTimers();
  const limiter = createLimiter({ store: createMemoryStore({ clock: timers }), limits, validate: false });
  return { timers, limiter, worker: createJobWorker(limiter, { timers }) };
}

it('S33: a job waits until each of its units has room, and jobs of other costs are served in their order', async () => {
  const { timers, worker, limiter } = setUp();
  const order: string[] = [];
  const acquire = (name: string, cost: number | object) =>
    worker.acquire({ account: 'a', cost: cost as number }).then(({ accepted }) => order.push(`${name} ${accepted}`));
  const jobs = [acquire('one', COST), acquire('two', COST), acquire('three', COST), acquire('four', 1)];
  await timers.advance(9_000);
  expect(order).toEqual(['one true', 'two true']);
  await timers.advance(1_000);
  await Promise.all(jobs);
  expect(order).toEqual(['one true', 'two true', 'three true', 'four true']);
  expect(await limiter.peek({ account: 'a' })).toMatchObject([{ remaining: 7 }, { remaining: 600 }]);
});

it('S33: a job that can never fit, that waits too long, or whose cost is wrong, is rejected at once', async () => {
  const { worker } = setUp();
  const acquire = (cost: object, maxWaitMs?: number) =>
    worker.acquire({ account: 'a', cost: cost as { tokens: number } }, { maxWaitMs });
  await expect(acquire({ tokens: 1_001 })).rejects.toMatchObject({
    code: 'never_fits',
    unit: 'tokens',
    message: 'a cost of 1001 tokens never fits into a window of 1000 tokens: waiting does not help',
  });
  await expect(acquire({ tokns: 1 })).rejects.toMatchObject({ code: 'invalid_cost' });
  await acquire({ tokens: 900 });
  await expect(acquire({ tokens: 200 }, 5_000)).rejects.toMatchObject({ code: 'wait_too_long' });
});
