/** What only a cooldown in Redis can show: gates of several processes, at the same time, and an outage. */
import { startRedis } from 'headgate-testbed/redis-server';
import { Redis } from 'ioredis';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { GateEntry, Passage } from '../../../src/gate/gate.ts';
import type { GateEvent } from '../../../src/gate/index.ts';
import { createGate, createLimiter } from '../../../src/index.ts';
import { createLeases } from '../../../src/leases/create-leases.ts';
import { createRedisStore } from '../../../src/stores/redis/limits.ts';
import { redisForFile } from '../../support/ioredis-for-file.ts';

const client = redisForFile();

let prefixes = 0;
const newPrefix = (): string => `cooldown-${process.pid}-${prefixes++}`;
const answer = (status: number, fields: Record<string, string> = {}) => ({
  status,
  header: (name: string) => fields[name.toLowerCase()],
});
const passed = (entry: GateEntry): Passage => {
  if (entry.kind !== 'proceed') throw new Error(`answered ${entry.reply.status}`);
  return entry;
};
const statusOf = (entry: GateEntry): number => (entry.kind === 'answer' ? entry.reply.status : 200);

/** The gate of one process. */
function openGate(prefix: string, redis = client, options: { leases?: boolean; deadlineMs?: number } = {}) {
  const { leases = false, deadlineMs = 10_000 } = options;
  const events: GateEvent[] = [];
  const store = createRedisStore(redis, { prefix, deadlineMs, logger: () => {}, denyCacheMaxMs: 60_000 });
  const limiter = createLimiter({
    store,
    limits: ['1000000/1h'],
    validate: false,
    ...(leases && { leases: createLeases() }),
  });
  const gate = createGate<string>({
    limiter,
    account: (account) => account,
    cooldown: true,
    onEvent: (event) => events.push(event),
    logger: false,
    validate: false,
  });
  const enter = async (account = 'a'): Promise<GateEntry> => gate.enter(account);
  return { enter, events, store, limiter };
}

const cooldowns = (gates: readonly ReturnType<typeof openGate>[]) =>
  gates.flatMap(({ events }) => events.filter(({ type }) => type === 'cooldown'));

describe('a cooldown in Redis', () => {
  it('S30: a thousand refusals at once, at four gates, make one pause; then one request of all goes alone', async () => {
    const prefix = newPrefix();
    const gates = Array.from({ length: 4 }, () => openGate(prefix));
    const passages = await Promise.all(
      gates.flatMap(({ enter }) => Array.from({ length: 250 }, async () => passed(await enter()))),
    );
    for (const one of passages) one.settle(answer(429, { 'retry-after': '1' }));
    await vi.waitFor(() => expect(cooldowns(gates)).toMatchObject([{ state: 'started', forMs: 1_000 }]));
    expect(await Promise.all(gates.map(async ({ enter }) => statusOf(await enter())))).toEqual(Array(4).fill(429));
    // Each process sees the pause before it is over. Afterwards, requests come to all of them at the same time.
    let probes: Passage[] = [];
    await vi.waitFor(
      async () => {
        const entries = await Promise.all(gates.flatMap(({ enter }) => [enter(), enter(), enter()]));
        probes = entries.filter((one) => one.kind === 'proceed');
        expect(probes).not.toEqual([]);
      },
      { timeout: 10_000, interval: 20 },
    );
    expect(probes).toHaveLength(1);
    expect(await Promise.all(gates.map(async ({ enter }) => statusOf(await enter())))).toEqual(Array(4).fill(429));
    (probes[0] as Passage).settle(answer(200));
    await vi.waitFor(
      async () => {
        const all = await Promise.all(gates.map(async ({ enter }) => statusOf(await enter())));
        expect(all).toEqual(Array(4).fill(200));
      },
      { timeout: 10_000, interval: 20 },
    );
    expect(cooldowns(gates)).toMatchObject([{ state: 'started' }, { state: 'ended' }]);
  });

  it('S30: refusals in a row count for all processes', async () => {
    const prefix = newPrefix();
    const [one, other] = [openGate(prefix), openGate(prefix)];
    const [first, second] = [passed(await one.enter()), passed(await other.enter())];
    first.settle(answer(429));
    await vi.waitFor(() => expect(cooldowns([one])).toHaveLength(1));
    await one.limiter.unblock({ account: 'a', route: '*' });
    // The other process knows nothing of the first refusal.
    second.settle(answer(429));
    await vi.waitFor(() => expect(cooldowns([other])).toMatchObject([{ forMs: 2_000 }]));
  });

  it('S30, S32: a pause ends the leases of its account', async () => {
    const { enter, store } = openGate(newPrefix(), client, { leases: true });
    const passages: Passage[] = [];
    for (let i = 0; i < 200; i++) passages.push(passed(await enter()));
    expect(store.stats().calls).toBeLessThan(200);
    passages[0]?.settle(answer(429, { 'retry-after': '60' }));
    await vi.waitFor(async () => expect(statusOf(await enter())).toBe(429));
  });

  it('S17, S30: while Redis is away, the process that got the refusal pauses all the same, and says so', async () => {
    const server = await startRedis();
    const own = new Redis({ port: server.port, host: '127.0.0.1', maxRetriesPerRequest: 0 });
    own.on('error', () => {});
    onTestFinished(() => own.disconnect());
    const { enter, events } = openGate(newPrefix(), own, { deadlineMs: 1_000 });
    const passage = passed(await enter());
    await server.stop();
    passage.settle(answer(429, { 'retry-after': '60' }));
    await vi.waitFor(
      () => expect(events).toContainEqual(expect.objectContaining({ type: 'failure', stage: 'cooldown' })),
      {
        timeout: 10_000,
      },
    );
    const paused = await enter();
    expect(statusOf(paused)).toBe(429);
    expect(paused.decision).toMatchObject({ degraded: true, blocked: { reason: 'provider' } });
    expect(statusOf(await enter('b'))).toBe(200);
  });
});
