/** S17, I12: this process stands still while Redis is well, and the reverse. */

import { Caller, HEALTHY } from 'headgate-testbed/redis-load';
import { startRedis, until } from 'headgate-testbed/redis-server';
import { describe, expect, it, onTestFinished } from 'vitest';
import { isHeadgateError } from '../../../src/base/errors.ts';
import { parseLimit } from '../../../src/core/limit.ts';
import { createWindowSet } from '../../../src/core/window-set.ts';
import { createRedisClaimStore } from '../../../src/stores/redis/claims.ts';
import { createRedisStore } from '../../../src/stores/redis/limits.ts';
import { CLIENTS } from '../../support/redis-clients.ts';

const DEADLINE_MS = 250;
const STALL_MS = 600;
const windowSet = createWindowSet([], parseLimit(['1000/1h']));
const common = { token: 'a', fingerprint: 'f', retentionMs: 60_000 };
const begin = { ...common, leaseMs: 30_000, onOrphan: 'reject', dispatch: false } as const;

/** Keeps the event loop busy, as a stop of the process does. */
function stall(): void {
  const end = performance.now() + STALL_MS;
  while (performance.now() < end);
}

/** Commands leave at the end of a turn, and some clients write one turn later. */
async function turns(): Promise<void> {
  for (let i = 0; i < 3; i++) await new Promise((resolve) => setImmediate(resolve));
}

async function start(connect: (typeof CLIENTS)[string]) {
  const server = await startRedis();
  const { client, disconnect } = await connect(server.port);
  onTestFinished(async () => {
    disconnect();
    await server.stop();
  });
  const limits = createRedisStore(client, { deadlineMs: DEADLINE_MS, denyCacheMaxMs: 0 });
  const claims = createRedisClaimStore(client, { deadlineMs: DEADLINE_MS });
  // The first call of each loads its script, which takes two round trips.
  const isReady = async (): Promise<boolean> => {
    await claims.inspect({ scope: '', key: '' });
    return HEALTHY.includes(await new Caller(limits, windowSet).check());
  };
  await until(() => isReady().catch(() => false), 'Redis decides');
  return { server, limits, claims };
}

describe.each(Object.entries(CLIENTS))('%s', (_name, connect) => {
  it('S17: six stalls of this process: Redis answered in time, so nothing is degraded and no breaker opens', async () => {
    const { limits, claims } = await start(connect);
    const caller = new Caller(limits, windowSet);
    const timeouts = limits.stats().timeouts + claims.stats().timeouts;
    for (let i = 0; i < 6; i++) {
      const checks = [caller.check('a'), caller.check('b')];
      const claim = claims.begin({ scope: 'app', key: `k${i}` }, begin);
      await turns();
      stall();
      expect(await Promise.all(checks)).toEqual(['accepted', 'accepted']);
      expect(await claim).toMatchObject({ kind: 'claimed' });
    }
    expect(limits.stats().timeouts + claims.stats().timeouts).toBe(timeouts);
    expect([limits.stats().breaker, claims.stats().breaker]).toEqual(['closed', 'closed']);
  });

  it('S17: a frozen Redis is given up at the deadline, also after a stall', async () => {
    const { server, limits, claims } = await start(connect);
    const caller = new Caller(limits, windowSet);
    server.freeze();
    onTestFinished(() => server.thaw());
    const failure = claims.begin({ scope: 'app', key: 'k' }, begin).catch((error: unknown) => error);
    expect(await caller.check()).toBe('degraded-accepted');
    expect(isHeadgateError(await failure, 'store_timeout')).toBe(true);
    const check = caller.check();
    await turns();
    stall();
    const stalled = performance.now();
    expect(await check).toBe('degraded-accepted');
    expect(performance.now() - stalled).toBeLessThan(DEADLINE_MS);
  });
});
