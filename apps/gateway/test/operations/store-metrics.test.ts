/** What only grows is a counter, so that its rate is right after a restart too; what can fall is a gauge. */
import { expect, it } from 'vitest';
import {
  memoryClaimMetrics,
  memoryLimitMetrics,
  postgresClaimMetrics,
  redisClaimMetrics,
  serverLimitMetrics,
} from '../../src/operations/store-metrics.ts';

it.each([
  ['memory_store', memoryLimitMetrics, ['keys', 'max_keys']],
  ['memory_claims', memoryClaimMetrics, ['keys', 'max_keys', 'bytes', 'max_bytes']],
  ['redis_store', serverLimitMetrics.bind(undefined, 'redis'), ['breaker']],
  ['redis_claims', redisClaimMetrics, ['breaker', 'large_bytes', 'large_breaker']],
  ['postgres_store', serverLimitMetrics.bind(undefined, 'postgres'), ['breaker']],
  ['postgres_claims', postgresClaimMetrics, ['breaker', 'large_bytes', 'large_breaker']],
] as const)('%s', (prefix, metricsOf, gauges) => {
  const metrics = metricsOf(() => {
    throw new Error('only their names are read');
  });
  const names = metrics.filter(({ type }) => type === 'gauge').map(({ name }) => name);
  expect(names).toEqual(gauges.map((name) => `${prefix}_${name}`));
  const counters = metrics.filter(({ type }) => type === 'counter');
  expect(counters.length).toBeGreaterThan(1);
  for (const { name } of counters) expect(name).toMatch(/_total$/);
});
