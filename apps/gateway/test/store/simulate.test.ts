/** Simulate, fed with the log of a real gateway with Redis, predicts what that gateway decided, line by line. */

import { startUpstream } from 'headgate-testbed/upstream';
import { Redis } from 'ioredis';
import { expect, inject, it } from 'vitest';
import { expectPredicted, loadGateway } from '../support/simulated-load.ts';

it('predicts every decision of a gateway with Redis under concurrent load', async () => {
  const upstream = await startUpstream();
  // A database of its own: other tests have the same accounts. No busy machine makes a decision late.
  const store = `redis://127.0.0.1:${inject('redis').port}/11`;
  // The log of a second attempt cannot explain the counters of the first one.
  const redis = new Redis(store);
  await redis.flushdb();
  redis.disconnect();
  const run = await loadGateway(upstream.url, { store, storeDeadlineMs: 10_000 });
  const report = await expectPredicted(run);
  expect(report.matrix.both).toBeGreaterThan(20);
  expect(run.log.match(/"msg":"refund"/g)?.length).toBeGreaterThan(5);
});
