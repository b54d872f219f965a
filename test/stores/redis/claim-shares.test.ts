import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { isHeadgateError, type ScopeFullError } from '../../../src/base/errors.ts';
import { ClaimShares } from '../../../src/stores/redis/claim-shares.ts';
import { createRedisClaimStore, type RedisClaimStore } from '../../../src/stores/redis/claims.ts';
import { createFakeClock } from '../../../src/testing/fake-clock.ts';

const redis = new Redis({ port: inject('redis').port, host: '127.0.0.1' });
beforeAll(() => redis.ping());
afterAll(() => redis.disconnect());

let stores = 0;
const MINUTE = 60_000;
const common = { token: 'a', fingerprint: 'f', retentionMs: MINUTE };
const begin = { ...common, leaseMs: 1_000, onOrphan: 'reject', dispatch: false } as const;
const keys = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, i) => from + i);

class World {
  readonly clock = createFakeClock(1_000_000_000_000);
  readonly prefix = `shares-${process.pid}-${stores++}`;
  readonly store: RedisClaimStore;

  constructor(maxClaimsPerScope: number) {
    this.store = createRedisClaimStore(redis, {
      prefix: this.prefix,
      clock: this.clock,
      deadlineMs: 10_000,
      maxClaimsPerScope,
    });
  }

  begin(scope: string, key: number, changes: object = {}) {
    return this.store.begin({ scope, key: `${key}` }, { ...begin, ...changes });
  }

  async reject(scope: string, key: number): Promise<void> {
    const reply = await this.begin(scope, key);
    const generation = reply.kind === 'claimed' ? reply.generation : 0;
    await this.store.abandon({ scope, key: `${key}` }, { ...common, generation, releasedRetentionMs: 10_000 });
  }

  async complete(scope: string, key: number): Promise<void> {
    await this.begin(scope, key);
    await this.store.complete({ scope, key: `${key}` }, { ...common, result: { status: '200', value: 'x' } });
  }

  /** The error of a begin that is refused. */
  async refused(scope: string, key: number): Promise<unknown> {
    return this.begin(scope, key).then(
      ({ kind }) => kind,
      (error: unknown) => error,
    );
  }

  async records(): Promise<number> {
    return (await redis.keys(`${this.prefix}:*`)).length;
  }
}

describe('claims of a scope in Redis', () => {
  it('I13: a full scope refuses its own new keys, says until when, and disturbs neither known keys nor other scopes', async () => {
    const world = new World(10);
    for (const key of keys(0, 10)) await world.complete('A', key);
    const error = (await world.refused('A', 10)) as ScopeFullError;
    expect(isHeadgateError(error, 'scope_full')).toBe(true);
    expect(error.maxClaimsPerScope).toBe(10);
    expect(error.retryAfterMs).toBeGreaterThanOrEqual(MINUTE);
    expect(error.retryAfterMs).toBeLessThanOrEqual(MINUTE + MINUTE / 8);
    expect(world.store.stats()).toMatchObject({ refusedInScope: 1, breaker: 'closed' });
    expect(await world.records()).toBe(10);
    for (const key of keys(0, 10)) expect((await world.begin('A', key, { token: 'b' })).kind).toBe('settled');
    for (const key of keys(0, 5)) expect((await world.begin('B', key)).kind).toBe('claimed');
    world.clock.advance(error.retryAfterMs);
    expect((await world.begin('A', 10)).kind).toBe('claimed');
  });

  it('I13: released claims take half of the share at most, so that they never keep the scope from new keys', async () => {
    const world = new World(20);
    for (const key of keys(0, 200)) await world.reject('A', key);
    expect(await world.records()).toBe(10);
    expect((await world.begin('A', 5, { token: 'b', fingerprint: 'g' })).kind).toBe('mismatch');
    for (const key of keys(500, 510)) expect((await world.begin('A', key)).kind).toBe('claimed');
    expect(isHeadgateError(await world.refused('A', 510), 'scope_full')).toBe(true);
    // The released ones expire after minutes, and make room.
    world.clock.advance(12_000);
    for (const key of keys(510, 520)) expect((await world.begin('A', key)).kind).toBe('claimed');
  });

  it('I13: many claims that are released at once do not keep the scope from new keys either', async () => {
    const world = new World(20);
    for (const key of keys(0, 20)) await world.begin('A', key);
    const abandoning = { ...common, generation: 1, releasedRetentionMs: 10_000 };
    await Promise.all(keys(0, 20).map((key) => world.store.abandon({ scope: 'A', key: `${key}` }, abandoning)));
    for (const key of keys(20, 30)) expect((await world.begin('A', key)).kind).toBe('claimed');
  });

  it('I6: a key that is claimed again after its release is counted once', async () => {
    const world = new World(10);
    for (const key of keys(0, 4)) await world.reject('A', key);
    for (const key of keys(0, 4)) await world.complete('A', key);
    for (const key of keys(4, 10)) expect((await world.begin('A', key)).kind).toBe('claimed');
    expect(isHeadgateError(await world.refused('A', 10), 'scope_full')).toBe(true);
  });

  it('a count takes a few numbers, whatever the number of claims', () => {
    const shares = new ClaimShares(1_000_000);
    for (let now = 0; now < 86_400_000; now += 100) shares.claimed('A', 86_400_000, false, now);
    expect(shares.fullForMs('A', 86_400_000)).toBe(0);
    for (let i = 0; i < 136_001; i++) shares.claimed('A', 86_400_000, false, 86_399_999);
    expect(shares.fullForMs('A', 86_399_999)).toBeGreaterThan(0);
    expect(shares.fullForMs('B', 86_399_999)).toBe(0);
    expect(shares.fullForMs('A', 3 * 86_400_000)).toBe(0);
  });
});

describe('claims of unknown outcome in Redis', () => {
  const dispatched = { dispatch: true };
  const setOf = (world: World) => `${world.prefix}:claims:{A}:unresolved`;
  const noted = (world: World) => redis.zrange(setOf(world), '0', '-1');

  it('I9: the record of an unknown outcome never expires, and expires again once it is resolved', async () => {
    const world = new World(10);
    const ttl = (key: number) => redis.pttl(`${world.prefix}:claim:{A:${key}}`);
    await world.begin('A', 0);
    expect(await ttl(0)).toBeGreaterThan(0);
    await world.store.dispatch({ scope: 'A', key: '0' }, { ...common, leaseMs: 1_000, generation: 1 });
    await world.begin('A', 1, dispatched);
    expect([await ttl(0), await ttl(1)]).toEqual([-1, -1]);
    await expect.poll(() => noted(world)).toEqual(['=0', '=1']);
    await world.store.complete({ scope: 'A', key: '0' }, { ...common, result: { status: '200', value: 'x' } });
    await world.store.abandon({ scope: 'A', key: '1' }, { ...common, releasedRetentionMs: 9, generation: 1 });
    expect(Math.min(await ttl(0), await ttl(1))).toBeGreaterThan(0);
    await expect.poll(() => noted(world)).toEqual([]);
  });

  it('I13: a scope with too many forgets the oldest one whose retention is over, and says so', async () => {
    const world = new World(3);
    const forgotten: unknown[] = [];
    const stop = world.store.onForgotten(({ scope, key }) => forgotten.push(`${scope} ${key}`));
    for (const key of keys(0, 3)) {
      await world.begin('A', key, dispatched);
      await expect.poll(() => noted(world)).toHaveLength(key + 1);
      world.clock.advance(1);
    }
    // Its process died before it could remove its note.
    await redis.zadd(setOf(world), '1', '=resolved');
    world.clock.advance(2 * MINUTE);
    await world.begin('A', 3, dispatched);
    await expect.poll(() => noted(world)).toEqual(['=1', '=2', '=3']);
    expect(forgotten).toEqual(['A 0']);
    expect(world.store.stats().forgottenUnresolved).toBe(1);
    expect((await world.begin('A', 1, { token: 'b' })).kind).toBe('orphan');
    expect((await world.begin('A', 0, { token: 'b' })).kind).toBe('claimed');
    stop();
  });

  it('I13: none is forgotten before its retention is over; the retry of a key notes it again', async () => {
    const world = new World(2);
    const unbounded = createRedisClaimStore(redis, { prefix: world.prefix, clock: world.clock });
    for (const key of keys(0, 4)) await unbounded.begin({ scope: 'A', key: `${key}` }, { ...begin, ...dispatched });
    await expect.poll(() => noted(world)).toHaveLength(4);
    await redis.del(setOf(world));
    world.clock.advance(1_000);
    for (const key of keys(0, 4)) expect((await world.begin('A', key, { token: 'b' })).kind).toBe('orphan');
    await expect.poll(() => noted(world)).toHaveLength(4);
    for (const key of keys(0, 4)) expect((await world.begin('A', key, { token: 'b' })).kind).toBe('orphan');
    expect(world.store.stats().forgottenUnresolved).toBe(0);
  });
});
