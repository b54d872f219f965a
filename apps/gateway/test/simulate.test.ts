/** Simulate, fed with the log of a real gateway, predicts what that gateway decided, line by line. */

import { readTrace, simulate } from 'headgate-simulate';
import { eventually } from 'headgate-testbed/raw-http';
import { answer, held, startUpstream } from 'headgate-testbed/upstream';
import { expect, it, vi } from 'vitest';
import { policyOf } from '../src/cli/trace-flags.ts';
import { checkConfig } from '../src/config/config.ts';
import { configOf } from './support/gateway.ts';
import { startInProcess } from './support/in-process.ts';
import { expectPredicted, loadGateway } from './support/simulated-load.ts';

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

it('predicts requests that take longer than 5 s, whose decisions have a line of their own', async () => {
  const slow = held();
  const upstream = await startUpstream((seen, response, request) =>
    (seen.url.includes('slow') ? slow.behaviour : answer())(seen, response, request),
  );
  const config = {
    ...configOf(upstream.url),
    routes: [{ route: 'GET /api/v1/{name}', account: 'query.account_id' }],
    limits: { default: { allMethods: ['3/1h'] } },
    log: { account: true },
  };
  const gateway = await startInProcess(config);
  const ask = (name: string) => gateway.ask('GET', `/api/v1/${name}?account_id=acc_1`);
  const decisions = () => gateway.lines().filter(({ msg }) => msg === 'decision');
  const slowOnes = [ask('slow'), ask('slow')];
  await eventually(() => slow.waiting() === 2, 'both requests upstream');
  const now = performance.now.bind(performance);
  const later = vi.spyOn(performance, 'now').mockImplementation(() => now() + 5_001);
  try {
    // The third request sees that the two are old; the fourth is rejected while they still run.
    expect([(await ask('quick')).status, (await ask('quick')).status]).toEqual([200, 429]);
  } finally {
    later.mockRestore();
  }
  await eventually(() => decisions().length === 2, 'a line for each long request');
  slow.release();
  expect((await Promise.all(slowOnes)).map(({ status }) => status)).toEqual([200, 200]);
  await gateway.stop();
  const requests = await eventually(() => {
    const lines = gateway.lines().filter(({ msg }) => msg === 'request');
    return lines.length === 4 ? lines : undefined;
  }, 'a line for each request');
  expect(requests.map(({ at }) => at === null)).toEqual([false, false, true, true]);
  const log = gateway
    .lines()
    .map((line) => `${JSON.stringify(line)}\n`)
    .join('');
  const report = await simulate({ current: policyOf(checkConfig(config, 'test')), trace: readTrace(log) });
  expect(report.logged).toEqual({ accepted: 3, rejected: 1, agree: 4, differ: 0, first: [] });
});
