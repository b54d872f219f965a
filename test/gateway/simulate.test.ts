/** Simulate, fed with the log of a real gateway, predicts what that gateway decided, line by line. */
import { expect, it } from 'vitest';
import { expectPredicted, loadGateway } from '../support/simulated-load.ts';
import { startUpstream } from '../support/upstream.ts';

it('predicts every decision of a gateway with the memory store under concurrent load', async () => {
  const upstream = await startUpstream();
  const run = await loadGateway(upstream.url);
  const report = await expectPredicted(run);
  // The load has all that makes it hard: rejections, refunds, replays, windows that end.
  expect(report.matrix.both).toBeGreaterThan(20);
  expect(report.matrix.none).toBeGreaterThan(20);
  expect(run.log.match(/"msg":"refund"/g)?.length).toBeGreaterThan(5);
  expect(report.trace.skipped.replayed).toBeGreaterThan(2);
});
