import fc from 'fast-check';
import { randomRuns } from 'headgate-testbed/nightly';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import type { ClaimStore } from '../../../src/core/ports.ts';
import { createMemoryClaimStore } from '../../../src/stores/memory/claims.ts';
import { createRedisClaimStore, type RedisClaimStore } from '../../../src/stores/redis/claims.ts';
import { claimStoreSuite } from '../../../src/testing/claim-store-suite.ts';
import { createFakeClock, type FakeClock } from '../../../src/testing/fake-clock.ts';
import { Attempts, race } from '../../support/claim-attempts.ts';
import { judgeRace } from '../../support/claim-verdict.ts';

const redis = new Redis({ port: inject('redis').port, host: '127.0.0.1' });
beforeAll(() => redis.ping());
afterAll(() => redis.disconnect());

const prefix = `claims-both-${process.pid}`;
let stores = 0;
const onRedis = (clock: FakeClock): RedisClaimStore =>
  createRedisClaimStore(redis, { clock, prefix: `${prefix}-${stores++}`, deadlineMs: 10_000 });

/** Two stores that get the same commands, and must give the same replies. */
function twins(one: ClaimStore, other: ClaimStore): ClaimStore {
  const both =
    <Command, Reply>(send: (store: ClaimStore, id: never, command: Command) => Reply | Promise<Reply>) =>
    async (id: unknown, command: Command): Promise<Reply> => {
      const [first, second] = await Promise.all([send(one, id as never, command), send(other, id as never, command)]);
      expect(second).toEqual(first);
      return first;
    };
  return {
    synchronous: false,
    begin: both((store, id, command) => store.begin(id, command)),
    extend: both((store, id, command) => store.extend(id, command)),
    dispatch: both((store, id, command) => store.dispatch(id, command)),
    complete: both((store, id, command) => store.complete(id, command)),
    abandon: both((store, id, command) => store.abandon(id, command)),
    inspect: (id) => both((store) => store.inspect(id))(id, undefined),
  };
}

claimStoreSuite({ describe, it }, fc, {
  name: 'memory beside Redis',
  histories: randomRuns(100),
  create: (clock) => twins(createMemoryClaimStore({ clock, maxKeys: 1_000 }), onRedis(clock)),
});

describe('races of up to four owners, in Redis', () => {
  it.each(['reject', 'reexecute', 'reconcile'] as const)(
    'I10: %s: one definitive result, and every attempt gets it',
    async (onOrphan) => {
      let answers = 0;
      const property = fc.asyncProperty(race, fc.scheduler(), async ({ fates, lapses }, scheduler) => {
        const clock = createFakeClock(1_000_000);
        const attempts = new Attempts(onRedis(clock), clock, scheduler, onOrphan);
        await attempts.run(fates, lapses);
        await judgeRace(attempts);
        answers += attempts.witness.answers.length;
      });
      await fc.assert(property, { numRuns: randomRuns(200) });
      expect(answers).toBeGreaterThan(50);
    },
    120_000,
  );

  it('I8: after all these commands, every key has an expiry, unless its outcome is unknown', async () => {
    let [cursor, seen] = ['0', 0];
    do {
      const [next, keys] = await redis.scan(cursor, 'MATCH', `${prefix}-*`, 'COUNT', 1_000);
      cursor = next;
      for (const key of keys) {
        // -2: it has expired since the scan.
        if (key.endsWith(':unresolved') || (await redis.pttl(key)) !== -1) continue;
        expect(await redis.hmget(key, 'state', 'dispatched')).toEqual(['in_progress', '1']);
      }
      seen += keys.length;
    } while (cursor !== '0');
    expect(seen).toBeGreaterThan(100);
  });
});
