import { describe, expect, it } from 'vitest';
import { isHeadgateError, type ScopeFullError } from '../../../src/base/errors.ts';
import {
  createMemoryClaimStore,
  type MemoryClaimStore,
  type MemoryClaimStoreOptions,
} from '../../../src/stores/memory/claims.ts';
import { createMemoryStore } from '../../../src/stores/memory/limits.ts';
import { createFakeClock, type FakeClock } from '../../../src/testing/fake-clock.ts';

const LEASE_MS = 1_000;
const RETENTION_MS = 10_000;
const begin = {
  fingerprint: 'f',
  retentionMs: RETENTION_MS,
  leaseMs: LEASE_MS,
  onOrphan: 'reject',
  dispatch: true,
} as const;

/** A store whose keys are numbers, of one scope that may fill the store. */
class World {
  readonly clock: FakeClock = createFakeClock(1_000_000);
  readonly store: MemoryClaimStore;

  constructor(options: MemoryClaimStoreOptions) {
    const { maxKeys = 100_000, maxBytes = 67_108_864 } = options;
    const shares = { maxClaimsPerScope: maxKeys, maxBytesPerScope: maxBytes };
    this.store = createMemoryClaimStore({ clock: this.clock, ...shares, ...options });
  }

  begin(key: number, token = 'a', retentionMs = RETENTION_MS) {
    return this.store.begin(idOf(key), { ...begin, token, retentionMs });
  }

  complete(key: number, value: string | undefined, retentionMs = RETENTION_MS) {
    const result = { status: '200', value };
    return this.store.complete(idOf(key), { token: 'a', fingerprint: 'f', retentionMs, result });
  }

  /** Claims and completes. */
  run(key: number, value: string | undefined, retentionMs = RETENTION_MS): void {
    this.begin(key, 'a', retentionMs);
    this.complete(key, value, retentionMs);
  }

  /** The value that a retry of the key gets. */
  replay(key: number): string | undefined {
    const reply = this.begin(key, 'retry');
    if (reply.kind !== 'settled') throw new Error(`key ${key} would run again: ${reply.kind}`);
    return reply.result.value;
  }
}

const idOf = (key: number) => ({ scope: 'app', key: `key-${key}` });
const full = (run: () => unknown): unknown => {
  try {
    return run();
  } catch (error) {
    return error;
  }
};

describe('maxKeys', () => {
  it('I13: a store full of claims in progress refuses and counts new keys, and evicts nothing', () => {
    const world = new World({ maxKeys: 100 });
    for (let key = 0; key < 100; key++) world.begin(key);
    for (let key = 100; key < 110; key++) {
      const error = full(() => world.begin(key));
      expect(isHeadgateError(error, 'store_full')).toBe(true);
      expect((error as Error).message).toContain('100 keys');
    }
    expect(world.store.stats()).toMatchObject({ keys: 100, refused: 10, swept: 0 });
    for (let key = 0; key < 100; key++) expect(world.begin(key, 'b').kind).toBe('in_progress');
    // Known keys work as before.
    for (let key = 0; key < 100; key++) world.complete(key, 'x');
    for (let key = 0; key < 100; key++) expect(world.replay(key)).toBe('x');
  });

  it('I8: a store full of finished claims refuses new keys, because an evicted one would be executed again', () => {
    const world = new World({ maxKeys: 10 });
    for (let key = 0; key < 10; key++) world.run(key, 'x');
    world.clock.advance(RETENTION_MS - 1);
    expect(
      isHeadgateError(
        full(() => world.begin(10)),
        'store_full',
      ),
    ).toBe(true);
    for (let key = 0; key < 10; key++) expect(world.replay(key)).toBe('x');
    world.clock.advance(1);
    expect(world.begin(10).kind).toBe('claimed');
  });

  it('a claim whose lease has expired stays for its retention, and is then the first to be swept', () => {
    const world = new World({ maxKeys: 1 });
    world.store.begin(idOf(0), { ...begin, token: 'a', dispatch: false });
    world.clock.advance(LEASE_MS);
    expect(
      isHeadgateError(
        full(() => world.begin(1)),
        'store_full',
      ),
    ).toBe(true);
    world.clock.advance(RETENTION_MS - LEASE_MS);
    expect(world.begin(1).kind).toBe('claimed');
    expect(world.store.stats()).toMatchObject({ keys: 1, swept: 1, refused: 1 });
  });

  it('I13: a full store forgets an unknown outcome only after its retention, only for its own scope, and says so', () => {
    const world = new World({ maxKeys: 2, maxClaimsPerScope: 2 });
    const forgotten: unknown[] = [];
    const stop = world.store.onForgotten((id) => forgotten.push(id));
    world.begin(0);
    world.run(1, 'x', 2 * RETENTION_MS);
    world.clock.advance(RETENTION_MS - 1);
    expect(
      isHeadgateError(
        full(() => world.begin(2)),
        'store_full',
      ),
    ).toBe(true);
    world.clock.advance(1);
    expect(
      isHeadgateError(
        full(() => world.store.begin({ scope: 'other', key: 'k' }, { ...begin, token: 'a' })),
        'store_full',
      ),
    ).toBe(true);
    expect(world.begin(0, 'b').kind).toBe('orphan');
    expect(forgotten).toEqual([]);
    expect(world.begin(2).kind).toBe('claimed');
    expect(forgotten).toEqual([idOf(0)]);
    expect(world.replay(1)).toBe('x');
    expect(world.store.stats()).toMatchObject({ keys: 2, forgottenUnresolved: 1, forgotten: 0, swept: 0 });
    stop();
    world.clock.advance(RETENTION_MS);
    expect(world.begin(3).kind).toBe('claimed');
    expect(forgotten).toEqual([idOf(0)]);
  });

  it('I13: a full scope forgets expired and released keys before an unknown outcome, and then the oldest one', () => {
    const world = new World({ maxKeys: 100, maxClaimsPerScope: 4 });
    const forgotten: unknown[] = [];
    world.store.onForgotten((id) => forgotten.push(id));
    world.begin(0);
    world.begin(1);
    world.run(2, 'x');
    world.clock.advance(RETENTION_MS);
    world.begin(3);
    world.store.abandon(idOf(3), {
      token: 'a',
      fingerprint: 'f',
      retentionMs: 9,
      releasedRetentionMs: 9,
      generation: 1,
    });
    expect([4, 5].map((key) => world.begin(key).kind)).toEqual(['claimed', 'claimed']);
    expect(forgotten).toEqual([]);
    expect([6, 7].map((key) => world.begin(key).kind)).toEqual(['claimed', 'claimed']);
    expect(forgotten).toEqual([idOf(0), idOf(1)]);
    expect(
      isHeadgateError(
        full(() => world.begin(8)),
        'scope_full',
      ),
    ).toBe(true);
    expect(world.begin(4, 'b').kind).toBe('in_progress');
  });

  it('an outcome without a record is refused as well, and its sender can try again', () => {
    const world = new World({ maxKeys: 1 });
    world.begin(0);
    expect(
      isHeadgateError(
        full(() => world.complete(1, 'x')),
        'store_full',
      ),
    ).toBe(true);
    world.clock.advance(RETENTION_MS);
    expect(world.complete(1, 'x')).toEqual({ kind: 'ok' });
    expect(world.replay(1)).toBe('x');
  });

  it('a command that finds no record and creates none needs no room', () => {
    const world = new World({ maxKeys: 1 });
    world.begin(0);
    const held = { token: 'a', fingerprint: 'f', retentionMs: 1, leaseMs: 1, generation: 1 };
    expect(world.store.extend(idOf(1), held)).toEqual({ kind: 'lost' });
    expect(world.store.inspect(idOf(1))).toBeUndefined();
    expect(world.store.stats()).toMatchObject({ keys: 1, refused: 0 });
  });

  it('expired keys are swept a few at a time by other commands, long before the store is full', () => {
    const world = new World({ maxKeys: 10_000 });
    for (let key = 0; key < 1_000; key++) world.run(key, 'x');
    world.clock.advance(RETENTION_MS);
    let most = 0;
    for (let key = 1_000; key < 2_000; key++) {
      const before = world.store.stats().swept;
      world.run(key, 'x');
      most = Math.max(most, world.store.stats().swept - before);
    }
    expect(most).toBeLessThanOrEqual(4);
    expect(world.store.stats()).toMatchObject({ keys: 1_000, swept: 1_000, bytes: 2_000 });
  });

  it('old keys with a long retention do not keep others from being swept', () => {
    const world = new World({ maxKeys: 10 });
    for (let key = 0; key < 5; key++) world.run(key, 'x', 10 * RETENTION_MS);
    for (let key = 5; key < 10; key++) world.run(key, 'x');
    world.clock.advance(RETENTION_MS);
    for (let key = 10; key < 15; key++) expect(world.begin(key).kind).toBe('claimed');
    for (let key = 0; key < 5; key++) expect(world.replay(key)).toBe('x');
  });

  it('keys that are not used any more are swept by commands on other keys', () => {
    const world = new World({ maxKeys: 100 });
    for (let key = 0; key < 50; key++) world.run(key, 'x');
    world.run(50, 'y', 100 * RETENTION_MS);
    world.clock.advance(RETENTION_MS);
    for (let i = 0; i < 256 * 60; i++) world.store.inspect(idOf(50));
    for (let i = 0; i < 256 * 60; i++) world.replay(50);
    expect(world.store.stats()).toMatchObject({ keys: 1, swept: 50 });
  });

  it('a store with several shards loses no key', () => {
    const world = new World({ maxKeys: 70_000 });
    for (let key = 0; key < 70_000; key++) world.begin(key);
    expect(world.store.stats()).toMatchObject({ keys: 70_000, refused: 0 });
    for (let key = 0; key < 70_000; key += 7) expect(world.begin(key, 'b').kind).toBe('in_progress');
    expect(
      isHeadgateError(
        full(() => world.begin(70_000)),
        'store_full',
      ),
    ).toBe(true);
  });

  it("a limiter's store has its own bound", () => {
    const world = new World({ maxKeys: 1 });
    const limits = createMemoryStore({ maxKeys: 1, clock: world.clock });
    world.begin(0);
    expect(limits.stats().keys).toBe(0);
  });
});

/** A store whose keys are numbers, with scopes by name. */
class Scopes {
  readonly clock: FakeClock = createFakeClock(1_000_000);
  readonly store: MemoryClaimStore;

  constructor(options: MemoryClaimStoreOptions) {
    this.store = createMemoryClaimStore({ clock: this.clock, ...options });
  }

  begin(scope: string, key: number, changes: object = {}) {
    return this.store.begin({ scope, key: `key-${key}` }, { ...begin, token: 'a', ...changes });
  }

  /** Claims and releases, as for a request that a limit rejects. */
  reject(scope: string, key: number): void {
    const reply = this.begin(scope, key);
    if (reply.kind !== 'claimed') throw new Error(reply.kind);
    const { generation } = reply;
    const command = { token: 'a', fingerprint: 'f', retentionMs: RETENTION_MS, releasedRetentionMs: RELEASED_MS };
    this.store.abandon({ scope, key: `key-${key}` }, { ...command, generation });
  }

  /** Claims and completes. */
  run(scope: string, key: number, value: string | undefined = undefined, retentionMs = RETENTION_MS): void {
    this.begin(scope, key, { retentionMs });
    const command = { token: 'a', fingerprint: 'f', retentionMs, result: { status: '200', value } };
    this.store.complete({ scope, key: `key-${key}` }, command);
  }

  /** Completes claims until the store refuses one. */
  fill(scope: string, most: number): void {
    full(() => {
      for (const key of range(0, most)) this.run(scope, key);
    });
  }

  /** The values that retries of the first keys get. */
  values(scope: string, keys: number): (string | undefined)[] {
    const replies = range(0, keys).map((key) => this.begin(scope, key, { token: 'retry' }));
    return replies.map((reply) => (reply.kind === 'settled' ? reply.result.value : reply.kind));
  }

  /** What another request with the same key gets. */
  other(scope: string, key: number): string {
    return this.begin(scope, key, { token: 'b', fingerprint: 'g' }).kind;
  }
}

const RELEASED_MS = 500;
const range = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, i) => from + i);

describe('a released claim', () => {
  it('I6: lives for its own retention, and is swept after it', () => {
    const world = new Scopes({ maxKeys: 100 });
    for (const key of range(0, 50)) world.reject('A', key);
    world.clock.advance(RELEASED_MS - 1);
    expect(world.other('A', 0)).toBe('mismatch');
    world.clock.advance(1);
    for (const key of range(100, 150)) world.run('A', key);
    expect(world.store.stats()).toMatchObject({ keys: 50, swept: 50, forgotten: 0 });
  });

  it('I13: 100,000 rejected requests of one scope leave room for every other, and for its own next ones', () => {
    const world = new Scopes({});
    for (const key of range(0, 100_000)) world.reject('A', key);
    expect(world.store.stats()).toMatchObject({ keys: 50_000, forgotten: 50_000, refused: 0, refusedInScope: 0 });
    for (const key of range(0, 1_000)) expect(world.begin('B', key).kind).toBe('claimed');
    for (const key of range(200_000, 201_000)) expect(world.begin('A', key).kind).toBe('claimed');
    // The oldest were forgotten first.
    expect([world.other('A', 51_000 - 1), world.other('A', 52_000)]).toEqual(['claimed', 'mismatch']);
  });

  it('I13: is forgotten before a full store refuses a new key of any scope', () => {
    const world = new Scopes({ maxKeys: 10, maxClaimsPerScope: 5 });
    for (const key of range(0, 5)) world.run('A', key);
    for (const key of range(0, 5)) world.reject('B', key);
    for (const key of range(0, 5)) expect(world.begin('C', key).kind).toBe('claimed');
    expect(world.store.stats()).toMatchObject({ keys: 10, forgotten: 5, refused: 0 });
    expect(
      isHeadgateError(
        full(() => world.begin('C', 5)),
        'scope_full',
      ),
    ).toBe(true);
    expect(
      isHeadgateError(
        full(() => world.begin('D', 0)),
        'store_full',
      ),
    ).toBe(true);
  });

  it('I10: a claim that is taken again is not forgotten any more', () => {
    const world = new Scopes({ maxKeys: 4, maxClaimsPerScope: 2 });
    world.reject('A', 0);
    world.run('A', 0);
    world.reject('A', 1);
    world.begin('A', 2);
    expect(world.begin('A', 0, { token: 'retry' }).kind).toBe('settled');
    expect(world.other('A', 2)).toBe('mismatch');
  });
});

describe('maxClaimsPerScope', () => {
  it('I13: a scope full of completed claims refuses its own new keys, says until when, and disturbs no other', () => {
    const world = new Scopes({ maxKeys: 100 });
    for (const key of range(0, 50)) world.run('A', key);
    world.clock.advance(1_000);
    const error = full(() => world.begin('A', 50)) as ScopeFullError;
    expect(isHeadgateError(error, 'scope_full')).toBe(true);
    expect(error).toMatchObject({ maxClaimsPerScope: 50, retryAfterMs: RETENTION_MS - 1_000 });
    expect(error.message).toContain('maxClaimsPerScope');
    expect(world.store.stats()).toMatchObject({ keys: 50, refused: 0, refusedInScope: 1, forgotten: 0 });
    // Known keys work as before, and so do other scopes.
    for (const key of range(0, 50)) expect(world.begin('A', key, { token: 'retry' }).kind).toBe('settled');
    for (const key of range(0, 50)) expect(world.begin('B', key).kind).toBe('claimed');
    world.clock.advance(RETENTION_MS - 1_000);
    expect(world.begin('A', 50).kind).toBe('claimed');
  });

  it('I13: claims in progress are never evicted, even if the owner died', () => {
    const world = new Scopes({ maxKeys: 4, maxClaimsPerScope: 2 });
    for (const key of range(0, 2)) world.begin('A', key);
    world.clock.advance(LEASE_MS);
    expect(
      isHeadgateError(
        full(() => world.begin('A', 2)),
        'scope_full',
      ),
    ).toBe(true);
    expect(world.begin('A', 0, { token: 'b' }).kind).toBe('orphan');
  });

  it('a claim that has expired makes room, also behind one that is stored for longer', () => {
    const world = new Scopes({ maxKeys: 8, maxClaimsPerScope: 4 });
    world.run('A', 0, undefined, 10 * RETENTION_MS);
    for (const key of range(1, 4)) world.run('A', key);
    world.clock.advance(RETENTION_MS);
    for (const key of range(4, 7)) expect(world.begin('A', key).kind).toBe('claimed');
    expect(world.begin('A', 0, { token: 'retry' }).kind).toBe('settled');
  });

  it('claims that have expired make room before a released one is forgotten', () => {
    const world = new Scopes({ maxKeys: 8, maxClaimsPerScope: 4 });
    for (const key of range(0, 3)) world.run('A', key);
    world.clock.advance(RETENTION_MS - 1);
    world.reject('A', 3);
    world.clock.advance(1);
    expect(world.begin('A', 4).kind).toBe('claimed');
    expect(world.other('A', 3)).toBe('mismatch');
    expect(world.store.stats()).toMatchObject({ keys: 2, swept: 3, forgotten: 0 });
  });

  it('a full scope deletes at most 256 of its claims that have expired at a time', () => {
    const world = new Scopes({ maxKeys: 1_000 });
    for (const key of range(0, 500)) world.run('A', key);
    world.clock.advance(RETENTION_MS);
    world.begin('A', 500);
    // Two more are swept for the new key.
    expect(world.store.stats().swept).toBe(256 + 2);
  });

  it('claims that have expired are swept a few at a time while the scope has room', () => {
    const world = new Scopes({ maxKeys: 1_000 });
    for (const key of range(0, 100)) world.run('A', key);
    world.clock.advance(RETENTION_MS);
    world.begin('A', 100);
    expect(world.store.stats().swept).toBe(2);
  });
});

describe('minClaimsPerScope', () => {
  const error = (run: () => unknown): unknown => (full(run) as { code?: unknown }).code;

  it('I13: scopes that fill the store together leave room for what is guaranteed to every other', () => {
    const world = new Scopes({ maxKeys: 100, maxClaimsPerScope: 50, minClaimsPerScope: 5 });
    for (const scope of ['A', 'B', 'C']) world.fill(scope, 60);
    expect(world.store.stats()).toMatchObject({ keys: 60, refused: 0, refusedInScope: 3 });
    for (const scope of ['D', 'E', 'F', 'G', 'H', 'I', 'J'])
      for (const key of range(0, 5)) expect(world.begin(scope, key).kind).toBe('claimed');
    expect(error(() => world.begin('D', 5))).toBe('scope_full');
    // Known keys work as before.
    for (const key of range(0, 50)) expect(world.begin('A', key, { token: 'retry' }).kind).toBe('settled');
  });

  it('I13: a scope past its guarantee does not take the place of a released key of another', () => {
    const world = new Scopes({ maxKeys: 20, maxClaimsPerScope: 20, minClaimsPerScope: 5 });
    for (const key of range(0, 5)) world.reject('B', key);
    world.fill('A', 20);
    expect(world.store.stats()).toMatchObject({ keys: 10, forgotten: 0, refusedInScope: 1 });
    for (const scope of ['B', 'C']) for (const key of range(5, 10)) world.run(scope, key);
    expect(world.store.stats()).toMatchObject({ keys: 15, forgotten: 5, refused: 0 });
  });
});

describe('maxBytesPerScope', () => {
  it('I7: past its share, a scope drops its own oldest values, never those of another', () => {
    const world = new Scopes({ maxBytes: 80, maxBytesPerScope: 40 });
    for (const key of range(0, 2)) world.run('B', key, '0123456789');
    for (const key of range(0, 5)) world.run('A', key, '0123456789');
    expect(world.values('A', 5)).toEqual([undefined, undefined, undefined, '0123456789', '0123456789']);
    expect(world.values('B', 2)).toEqual(['0123456789', '0123456789']);
    expect(world.store.stats()).toMatchObject({ bytes: 80, dropped: 3 });
    world.run('A', 5, '0123456789'.repeat(3));
    expect(world.values('B', 2)).toEqual(['0123456789', '0123456789']);
    expect(world.store.stats()).toMatchObject({ bytes: 80, dropped: 4 });
  });

  it('I7: a scope has no more than its share, even if the store has room', () => {
    const world = new Scopes({ maxBytes: 80, maxBytesPerScope: 40 });
    for (const key of range(0, 3)) world.run('A', key, '0123456789');
    expect(world.values('A', 3)).toEqual([undefined, '0123456789', '0123456789']);
  });
});

describe('maxBytes', () => {
  it('I7: scopes that fill it together drop their own oldest values, not those of a scope that has few', () => {
    const world = new Scopes({ maxBytes: 90, maxBytesPerScope: 60 });
    world.run('P', 0, '0123456789');
    for (const key of range(0, 5)) for (const scope of ['A', 'B']) world.run(scope, key, '0123456789');
    const reply = world.begin('P', 0, { token: 'retry' });
    expect(reply).toMatchObject({ kind: 'settled', result: { value: '0123456789' } });
    expect(world.store.stats().bytes).toBeLessThanOrEqual(90);
  });

  it('I7: a scope up to its equal share takes the room of the oldest value of all scopes', () => {
    const world = new Scopes({ maxBytes: 80, maxBytesPerScope: 60 });
    for (const key of range(0, 3)) world.run('A', key, '0123456789');
    for (const key of range(0, 2)) world.run('B', key, '0123456789');
    expect(world.values('A', 3)).toEqual([undefined, '0123456789', '0123456789']);
    expect(world.values('B', 2)).toEqual(['0123456789', '0123456789']);
  });

  it('I7: past the bound, the values of the oldest results are dropped; their claims stay', () => {
    const world = new World({ maxBytes: 60 });
    for (let key = 0; key < 5; key++) world.run(key, '0123456789');
    expect(world.store.stats()).toMatchObject({ keys: 5, bytes: 60, dropped: 2 });
    expect([0, 1, 2, 3, 4].map((key) => world.replay(key))).toEqual([
      undefined,
      undefined,
      ...Array(3).fill('0123456789'),
    ]);
    expect(world.begin(0, 'b')).toEqual({ kind: 'settled', result: { status: '200', value: undefined } });
  });

  it('the oldest result is the one stored first, not the one claimed or replayed first', () => {
    const world = new World({ maxBytes: 40 });
    for (const key of [0, 1, 2]) world.begin(key);
    for (const key of [2, 0]) world.complete(key, '0123456789');
    for (let i = 0; i < 10; i++) world.replay(2);
    world.complete(1, '0123456789');
    expect([2, 0, 1].map((key) => world.replay(key))).toEqual([undefined, '0123456789', '0123456789']);
  });

  it('a value that is larger than the bound does not displace others', () => {
    const world = new World({ maxBytes: 20 });
    world.run(0, '0123456789');
    world.run(1, '01234567890');
    expect([0, 1].map((key) => world.replay(key))).toEqual(['0123456789', undefined]);
    expect(world.store.stats()).toMatchObject({ bytes: 20, dropped: 1 });
  });

  it('with maxBytes 0, every outcome is stored without its value', () => {
    const world = new World({ maxBytes: 0 });
    for (const [key, value] of ['x', '', undefined].entries()) world.run(key, value);
    expect([0, 1, 2].map((key) => world.replay(key))).toEqual([undefined, '', undefined]);
    expect(world.store.stats()).toMatchObject({ bytes: 0, dropped: 1 });
  });

  it('an expired result is removed first, and is not counted as dropped', () => {
    const world = new World({ maxBytes: 40 });
    world.run(0, '0123456789', 5);
    world.run(1, '0123456789');
    world.clock.advance(5);
    world.run(2, '0123456789');
    expect([1, 2].map((key) => world.replay(key))).toEqual(['0123456789', '0123456789']);
    expect(world.store.stats()).toMatchObject({ dropped: 0, swept: 1, keys: 2, bytes: 40 });
  });

  it('the bytes of swept claims are subtracted, whatever their position in the list', () => {
    const world = new World({ maxBytes: 1_000 });
    world.run(0, 'aa', 30);
    world.run(1, 'bbb', 10);
    world.run(2, 'cccc', 20);
    expect(world.store.stats().bytes).toBe(18);
    for (const [key, bytes] of [
      [1, 12],
      [2, 4],
      [0, 0],
    ] as const) {
      world.clock.advance(10);
      // A retry finds the claim expired, and claims the key again without a result.
      world.begin(key, 'b', 1);
      expect(world.store.stats().bytes).toBe(bytes);
    }
  });
});

describe('options', () => {
  it.each([
    [{ maxKeys: 0 }, 'maxKeys'],
    [{ maxKeys: 1.5 }, 'maxKeys'],
    [{ maxKeys: 16_000_001 }, 'maxKeys'],
    [{ maxBytes: -1 }, 'maxBytes'],
    [{ maxBytes: Number.NaN }, 'maxBytes'],
    [{ maxClaimsPerScope: 0 }, 'maxClaimsPerScope'],
    [{ maxKeys: 9, maxClaimsPerScope: 10 }, 'maxClaimsPerScope'],
    [{ maxKeys: 9, maxClaimsPerScope: 5, minClaimsPerScope: 6 }, 'minClaimsPerScope'],
    [{ maxBytes: 9, maxBytesPerScope: 10 }, 'maxBytesPerScope'],
    [{ clock: {} as never }, 'clock'],
    [{ maxkeys: 1 } as never, 'maxkeys'],
  ])('%j is refused; the error names the option', (options, name) => {
    const error = full(() => createMemoryClaimStore(options));
    expect(isHeadgateError(error, 'invalid_option')).toBe(true);
    expect((error as Error).message).toContain(name);
  });

  it('a clock that does not return whole milliseconds is refused before anything is claimed', () => {
    let now = 0.5;
    const store = createMemoryClaimStore({ clock: { now: () => now } });
    expect(
      isHeadgateError(
        full(() => store.begin(idOf(0), { ...begin, token: 'a' })),
        'invalid_clock',
      ),
    ).toBe(true);
    now = 1;
    expect(store.stats().keys).toBe(0);
  });

  it('defaults: 100,000 keys, 64 MiB, and the monotonic clock', () => {
    const store = createMemoryClaimStore();
    expect(store.begin(idOf(0), { ...begin, token: 'a' })).toMatchObject({ kind: 'claimed', generation: 1 });
    expect(store.stats()).toEqual({
      keys: 1,
      maxKeys: 100_000,
      bytes: 0,
      maxBytes: 67_108_864,
      refused: 0,
      refusedInScope: 0,
      forgotten: 0,
      forgottenUnresolved: 0,
      dropped: 0,
      swept: 0,
    });
    store.close();
  });
});
