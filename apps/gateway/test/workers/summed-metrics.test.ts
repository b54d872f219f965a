/** The metrics of several processes as those of one: sums that never fall, and gauges that keep their meaning. */
import { describe, expect, it } from 'vitest';
import { createMetrics } from '../../src/operations/metrics.ts';
import type { ScrapedMetric } from '../../src/operations/store-metrics.ts';
import { EndedWorkers, sumOf } from '../../src/workers/summed-metrics.ts';

const gauge = (name: string, value: number, aggregator?: 'max'): ScrapedMetric => ({
  ...{ type: 'gauge', name, help: 'A gauge', value: () => value },
  ...(aggregator === undefined ? {} : { aggregator }),
});

/** A process with as many requests, of which one took as many seconds upstream. */
function familiesWith(count: number, ...gauges: ScrapedMetric[]) {
  const metrics = createMetrics(gauges);
  for (let i = 0; i < count; i += 1) metrics.onRequest('GET /a', 200);
  metrics.onUpstream('GET /a', count);
  return metrics.families();
}

const linesOf = async (families: Parameters<typeof sumOf>[0], name: string): Promise<string[]> =>
  (await sumOf(families).metrics()).split('\n').filter((line) => line.startsWith(name));

describe('the sum', () => {
  it('adds counters and histograms by their labels', async () => {
    const families = await Promise.all([familiesWith(2), familiesWith(3)]);
    expect(await linesOf(families, 'headgate_requests_total')).toEqual([
      'headgate_requests_total{route="GET /a",status="200"} 5',
    ]);
    expect(await linesOf(families, 'headgate_upstream_seconds_sum')).toEqual([
      'headgate_upstream_seconds_sum{route="GET /a"} 5',
    ]);
    expect(await linesOf(families, 'headgate_upstream_seconds_bucket{le="2.5"')).toEqual([
      'headgate_upstream_seconds_bucket{le="2.5",route="GET /a"} 1',
    ]);
  });

  it('adds gauges, or has the largest: a circuit breaker that is open in one process is open', async () => {
    const families = await Promise.all([
      familiesWith(1, gauge('connections', 4), gauge('redis_store_breaker', 2, 'max')),
      familiesWith(1, gauge('connections', 6), gauge('redis_store_breaker', 1, 'max')),
    ]);
    expect(await linesOf(families, 'headgate_connections')).toEqual(['headgate_connections 10']);
    expect(await linesOf(families, 'headgate_redis_store_breaker')).toEqual(['headgate_redis_store_breaker 2']);
  });

  it('has the metrics of Node, with the earliest start', async () => {
    const families = await Promise.all([familiesWith(1), familiesWith(1)]);
    const lines = await linesOf(families, 'process_start_time_seconds');
    expect(Number(lines[0]?.split(' ')[1])).toBeGreaterThan(1e9);
    expect(Number(lines[0]?.split(' ')[1])).toBeLessThan(3e9);
  });
});

describe('workers that have ended', () => {
  it('keep their counters and histograms in the sum, and lose their gauges', async () => {
    const ended = new EndedWorkers();
    const living = await familiesWith(1, gauge('connections', 1));
    for (const count of [10, 20]) ended.add(await familiesWith(count, gauge('connections', 100)));
    const families = [living, ended.families];
    expect(await linesOf(families, 'headgate_requests_total')).toEqual([
      'headgate_requests_total{route="GET /a",status="200"} 31',
    ]);
    expect(await linesOf(families, 'headgate_upstream_seconds_count')).toEqual([
      'headgate_upstream_seconds_count{route="GET /a"} 3',
    ]);
    expect(await linesOf(families, 'headgate_connections')).toEqual(['headgate_connections 1']);
  });

  it('take up no more room the more of them there are', async () => {
    const ended = new EndedWorkers();
    for (let i = 0; i < 20; i += 1) ended.add(await familiesWith(1));
    const requests = ended.families.find(({ name }) => name === 'headgate_requests_total');
    expect(requests?.values).toHaveLength(1);
  });
});
