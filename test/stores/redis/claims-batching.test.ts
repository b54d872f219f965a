import fc from 'fast-check';
import { randomRuns } from 'headgate-testbed/nightly';
import { type RedisServer, startRedis } from 'headgate-testbed/redis-server';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { isHeadgateError } from '../../../src/base/errors.ts';
import type { MaybePromise } from '../../../src/base/maybe-promise.ts';
import type { ClaimId, ClaimStore } from '../../../src/core/ports.ts';
import { createMemoryClaimStore } from '../../../src/stores/memory/claims.ts';
import { createRedisClaimStore } from '../../../src/stores/redis/claims.ts';
import { claimKey } from '../../../src/stores/redis/keys.ts';
import { createFakeClock } from '../../../src/testing/fake-clock.ts';

// A separate server, because its commands are counted while other test files use theirs.
let server: RedisServer;
let client: Redis;
beforeAll(async () => {
  server = await startRedis();
  client = new Redis({ port: server.port, host: '127.0.0.1' });
  await client.ping();
});
afterAll(async () => {
  client.disconnect();
  await server.stop();
});

let stores = 0;
const newPrefix = (): string => `claims-batching-${stores++}`;
const common = { token: 'a', fingerprint: 'f', retentionMs: 60_000 };
const begin = { ...common, leaseMs: 30_000, onOrphan: 'reject', dispatch: false } as const;

async function scriptsRun(): Promise<number> {
  const stats = await client.info('commandstats');
  // Without the notes of claims that take long, which nothing waits for.
  const notes = Number(/cmdstat_zcard:calls=(\d+)/.exec(stats)?.[1] ?? 0);
  return [...stats.matchAll(/cmdstat_eval(?:sha)?:calls=(\d+)/g)].reduce(
    (sum, [, calls]) => sum + Number(calls),
    -notes,
  );
}

type Command = (store: ClaimStore, id: ClaimId) => MaybePromise<unknown>;

/** Any command. There are few tokens and fingerprints, so that commands often conflict. */
const command: fc.Arbitrary<Command> = fc
  .record({
    name: fc.constantFrom('begin', 'extend', 'dispatch', 'complete', 'abandon', 'inspect'),
    token: fc.constantFrom('a', 'b'),
    fingerprint: fc.constantFrom('f', 'f', 'f', 'g'),
    retentionMs: fc.constantFrom(50, 1_000),
    releasedRetentionMs: fc.constantFrom(20, 100),
    leaseMs: fc.constantFrom(0, 100),
    generation: fc.integer({ min: 1, max: 2 }),
    onOrphan: fc.constantFrom('reject', 'reexecute' as const),
    dispatch: fc.boolean(),
    value: fc.option(fc.string(), { nil: undefined }),
  })
  .map(({ name, value, ...fields }) => (store, id) => {
    if (name === 'begin') return store.begin(id, { ...fields, deadline: undefined });
    if (name === 'extend') return store.extend(id, fields);
    if (name === 'dispatch') return store.dispatch(id, fields);
    if (name === 'complete') return store.complete(id, { ...fields, result: { status: '200', value } });
    return name === 'abandon' ? store.abandon(id, fields) : store.inspect(id);
  });
const turn = fc.record({
  commands: fc.array(fc.record({ key: fc.constantFrom('k', 'l', 'm'), command }), { minLength: 1, maxLength: 40 }),
  wait: fc.constantFrom(0, 60, 2_000),
});

describe('commands of one turn of the event loop', () => {
  it('are executed in their order, with the same replies as one by one in memory', async () => {
    const property = fc.asyncProperty(fc.array(turn, { minLength: 1, maxLength: 4 }), async (turns) => {
      const clock = createFakeClock(1_000_000_000_000);
      const memory = createMemoryClaimStore({ clock });
      const redis = createRedisClaimStore(client, { clock, prefix: newPrefix(), deadlineMs: 10_000 });
      for (const { commands, wait } of turns) {
        const ids = commands.map(({ key }) => ({ scope: 'app', key }));
        const actual = await Promise.all(commands.map(({ command }, i) => command(redis, ids[i] as ClaimId)));
        const expected = commands.map(({ command }, i) => command(memory, ids[i] as ClaimId));
        expect(actual).toEqual(expected);
        clock.advance(wait);
      }
    });
    await fc.assert(property, { numRuns: randomRuns(100) });
  });

  it('are sent together, up to 32 and without large values, in either direction', async () => {
    const store = createRedisClaimStore(client, { prefix: newPrefix(), deadlineMs: 10_000 });
    await store.begin({ scope: '', key: 'warm up' }, begin);
    const calls = async (work: () => Promise<unknown>): Promise<number> => {
      const before = await scriptsRun();
      await work();
      return (await scriptsRun()) - before;
    };
    const keys = Array.from({ length: 64 }, (_, i) => ({ scope: 'app', key: `k${i}` }));
    expect(await calls(() => Promise.all(keys.map((id) => store.begin(id, begin))))).toBe(2);
    const result = { status: '200', value: 'x'.repeat(40_000) };
    const four = keys.slice(0, 4);
    expect(await calls(() => Promise.all(four.map((id) => store.complete(id, { ...common, result }))))).toBe(4);
    // One call learns that all four are completed. Each result then has a call of its own.
    expect(await calls(() => Promise.all(four.map((id) => store.begin(id, begin))))).toBe(5);
    expect(store.stats()).toMatchObject({ calls: 77, timeouts: 0, late: 0, large: { bytes: 0, timeouts: 0 } });
  });

  it('a record that headgate did not write fails alone, and the error names it', async () => {
    const prefix = newPrefix();
    const errors: unknown[] = [];
    const onError = (error: unknown): void => void errors.push(error);
    const store = createRedisClaimStore(client, { prefix, deadlineMs: 10_000, onError });
    const foreign = claimKey(prefix, 'app', 'k2');
    await client.set(foreign, 'x');
    for (let i = 0; i < 10; i++) {
      const replies = await Promise.allSettled(
        [0, 1, 2, 3].map(async (n) => store.begin({ scope: 'app', key: `k${n}` }, begin)),
      );
      expect(replies.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled']);
      const { reason } = replies[2] as PromiseRejectedResult;
      expect(isHeadgateError(reason, 'store_unavailable')).toBe(true);
      expect(reason.message).toContain(foreign);
    }
    expect(errors).toHaveLength(10);
    expect(store.stats().breaker).toBe('closed');
  });

  it('I12: if the call fails, every command fails, and a late answer is counted for each', async () => {
    const own = new Redis({ port: server.port, host: '127.0.0.1' });
    // Nothing else is sent over it: a write that waits for the end of the pause would hold up what ends it.
    const operator = new Redis({ port: server.port, host: '127.0.0.1' });
    await own.ping();
    const store = createRedisClaimStore(own, { prefix: newPrefix(), deadlineMs: 50 });
    await operator.client('PAUSE', 60_000, 'WRITE');
    onTestFinished(async () => {
      await operator.client('UNPAUSE');
      operator.disconnect();
    });
    const replies = await Promise.allSettled(
      [0, 1, 2].map(async (n) => store.begin({ scope: 'app', key: `k${n}` }, begin)),
    );
    for (const reply of replies) {
      expect(isHeadgateError((reply as PromiseRejectedResult).reason, 'store_timeout')).toBe(true);
    }
    expect(store.stats()).toMatchObject({ calls: 3, timeouts: 3 });
    await operator.client('UNPAUSE');
    await expect.poll(() => store.stats().late, { timeout: 10_000 }).toBe(3);
    own.disconnect();
  });
});
