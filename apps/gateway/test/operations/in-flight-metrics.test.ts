/** S29: an operator sees the requests in flight, and those that lost their slot. */
import { createMemoryStore } from 'headgate/memory';
import type { LimitStore, Slot } from 'headgate/stores';
import { describe, expect, it, vi } from 'vitest';
import { checkConfig } from '../../src/config/config.ts';
import { createMetrics } from '../../src/operations/metrics.ts';
import { openParts } from '../../src/process-parts.ts';
import { createRules, type RuleParts } from '../../src/rules.ts';
import { openLog } from '../support/in-process.ts';

const HOUR_MS = 3_600_000;
const slot = (token: string, route = 'GET /a'): Slot => ({ account: 'acc_1', route, token, most: { allMethods: 2 } });
const samples = async (metrics: ReturnType<typeof createMetrics>, name: string) =>
  (await metrics.render()).text.split('\n').filter((line) => line.startsWith(`headgate_${name}`));

describe('requests in flight', () => {
  it.each(['memory', 'server'])('S29: are counted by route until they end, with a store like %s', async (kind) => {
    const metrics = createMetrics([]);
    const memory = createMemoryStore();
    const server = {
      ...memory,
      synchronous: false,
      holdSlot: async (...call) => memory.holdSlot(...call),
      releaseSlot: async (of) => memory.releaseSlot(of),
    } as LimitStore;
    const { holdSlot, releaseSlot } = metrics.inFlight.counted(kind === 'memory' ? memory : server);
    for (const held of [slot('1'), slot('2', 'GET /b'), slot('1'), slot('3')]) await holdSlot?.(held, HOUR_MS);
    expect(await samples(metrics, 'requests_in_flight')).toEqual([
      'headgate_requests_in_flight{route="GET /a"} 1',
      'headgate_requests_in_flight{route="GET /b"} 1',
    ]);
    await releaseSlot?.(slot('1'));
    await releaseSlot?.(slot('3'));
    expect(await samples(metrics, 'requests_in_flight')).toEqual([
      'headgate_requests_in_flight{route="GET /a"} 0',
      'headgate_requests_in_flight{route="GET /b"} 1',
    ]);
  });

  it.each([false, true])(
    'S29: that lose their slot are counted and logged, with "log.account": %s',
    async (account) => {
      const { log, lines } = openLog();
      const metrics = createMetrics([]);
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
      try {
        const config = checkConfig(
          {
            upstream: 'http://127.0.0.1:1',
            accounts: [{ id: 'acc_1', application: 'app' }],
            routes: [{ route: 'GET /a', account: 'header.x-account' }],
            limits: { default: { allMethods: { inFlight: 2 } } },
            log: { account },
          },
          'test',
        );
        const parts = await openParts(config, { log, metrics, isReady: () => true });
        const { limiter } = createRules(config, parts as unknown as RuleParts);
        expect((await limiter.consume({ account: 'acc_1', route: 'GET /a' })).accepted).toBe(true);
        // The second hour lets the log write its lines.
        await vi.advanceTimersByTimeAsync(2 * HOUR_MS);
        await parts.close();
      } finally {
        vi.useRealTimers();
      }
      expect(await samples(metrics, 'in_flight_events_total')).toEqual([
        'headgate_in_flight_events_total{type="over"} 0',
        'headgate_in_flight_events_total{type="taken_again"} 0',
        'headgate_in_flight_events_total{type="given_up"} 1',
      ]);
      expect(await samples(metrics, 'requests_in_flight')).toEqual(['headgate_requests_in_flight{route="GET /a"} 0']);
      await expect.poll(() => lines().length).toBe(1);
      const msg = 'a request in flight did not end in time, and counts no more';
      expect(lines()).toEqual([
        { level: 40, time: expect.any(String), route: 'GET /a', msg, ...(account && { account: 'acc_1' }) },
      ]);
    },
  );
});
