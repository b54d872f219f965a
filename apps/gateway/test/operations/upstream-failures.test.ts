/** Failures of the upstream are all counted, and logged at a bounded rate. */
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { UpstreamFailure } from '../../src/exchange/upstream-failure.ts';
import type { Log } from '../../src/operations/log.ts';
import { createMetrics } from '../../src/operations/metrics.ts';
import { createUpstreamFailures } from '../../src/operations/upstream-failures.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const REFUSED: UpstreamFailure = { upstream: '10.0.0.1:80', cause: 'refused', code: 'ECONNREFUSED', isSent: false };

function create() {
  const lines: Record<string, unknown>[] = [];
  const warn = (fields: object, msg: string): void => void lines.push({ ...fields, msg });
  const metrics = createMetrics([]);
  const report = createUpstreamFailures({ logger: { warn } } as unknown as Log, metrics);
  const fail = (times: number, failure: Partial<UpstreamFailure> = {}): void => {
    for (let i = 1; i <= times; i += 1) report({ id: `id-${i}`, route: undefined }, { ...REFUSED, ...failure });
  };
  return { lines, metrics, fail };
}

it('writes five lines per second, upstream and cause, then how many it left out', async () => {
  const { lines, metrics, fail } = create();
  fail(1_000);
  fail(6, { cause: 'dns', code: 'ENOTFOUND' });
  fail(2, { upstream: '10.0.0.2:80' });
  expect(lines).toHaveLength(5 + 5 + 2);
  expect(lines[0]).toEqual({
    req_id: 'id-1',
    route: null,
    upstream: '10.0.0.1:80',
    cause: 'refused',
    code: 'ECONNREFUSED',
    msg: 'upstream unreachable',
  });
  vi.advanceTimersByTime(1_000);
  expect(lines.slice(12)).toEqual([
    { upstream: '10.0.0.1:80', cause: 'refused', leftOut: 995, msg: 'more upstream failures' },
    { upstream: '10.0.0.1:80', cause: 'dns', leftOut: 1, msg: 'more upstream failures' },
  ]);
  const { text } = await metrics.render();
  expect(text).toContain('headgate_upstream_errors_total{upstream="10.0.0.1:80",cause="refused"} 1000\n');
  expect(text).toContain('headgate_upstream_errors_total{upstream="10.0.0.1:80",cause="dns"} 6\n');
});

it('begins again in the next second, and keeps no timer if nothing fails', () => {
  const { lines, fail } = create();
  fail(3);
  vi.advanceTimersByTime(1_000);
  expect(vi.getTimerCount()).toBe(0);
  fail(5);
  expect(lines).toHaveLength(8);
  vi.advanceTimersByTime(1_000);
  expect(lines).toHaveLength(8);
});

it('says if the upstream may have received the request', () => {
  const { lines, fail } = create();
  fail(1, { cause: 'timeout', code: undefined, isSent: true });
  expect(lines).toMatchObject([{ cause: 'timeout', msg: 'upstream failed' }]);
});
