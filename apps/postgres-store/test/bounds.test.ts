import { OptionError } from 'headgate';
import { createWindowSet, ScopeFullError, StoreUnavailableError } from 'headgate/stores';
import { createFakeClock } from 'headgate/testing';
import { expect, test } from 'vitest';
import { createPostgresClaimStore, createPostgresStore, migrate } from '../src/index.ts';
import { countOf, migratedPool } from './support/pool.ts';

const pool = await migratedPool('bounds');
const windowSet = createWindowSet([], [{ max: 5, durationMs: 1_000 }]);
const BEGIN = { fingerprint: 'f', retentionMs: 1_000, leaseMs: 100, onOrphan: 'reject' as const, dispatch: false };

test('S18: new rows remove rows that are over, so that tables do not grow', async () => {
  const clock = createFakeClock();
  const store = createPostgresStore(pool, { schema: 'bounds', clock });
  const claims = createPostgresClaimStore(pool, { schema: 'bounds', clock });
  for (let round = 0; round < 5; round++) {
    await Promise.all(
      Array.from({ length: 40 }, async (_, i) => {
        const name = `${round} ${i}`;
        await store.consume(name, 'GET /', windowSet, 1);
        await store.block?.({ account: name }, { forMs: 1_000 });
        await claims.begin({ scope: 'app', key: name }, { ...BEGIN, token: name });
      }),
    );
    clock.advance(1_000);
  }
  for (const table of ['counters', 'blocks', 'claims']) {
    const rows = await countOf(pool, `bounds.${table}`);
    expect(rows).toBeGreaterThan(0);
    // The rows of the last round, and the rows that the first rows of a round left.
    expect(rows).toBeLessThanOrEqual(80);
  }
});

test('a rejected request writes nothing', async () => {
  const store = createPostgresStore(pool, { schema: 'bounds' });
  const closed = createWindowSet([], [{ max: 0, durationMs: 1_000 }]);
  const before = await countOf(pool, 'bounds.counters');
  expect((await store.consume('closed', 'GET /', closed, 1)).accepted).toBe(false);
  expect(await countOf(pool, 'bounds.counters')).toBe(before);
});

test('T1: a full scope gets ScopeFullError for new keys, and other scopes do not', async () => {
  const clock = createFakeClock();
  const claims = createPostgresClaimStore(pool, { schema: 'bounds', clock, maxClaimsPerScope: 10 });
  const begin = async (scope: string, key: string) =>
    claims.begin({ scope, key }, { ...BEGIN, retentionMs: 60_000, token: key });
  await begin('full', 'known');
  for (let i = 0; i < 20; i++)
    await begin('full', `key ${i}`).catch((error) => expect(error).toBeInstanceOf(ScopeFullError));
  const error = await begin('full', 'one more').catch((thrown) => thrown);
  expect(error).toBeInstanceOf(ScopeFullError);
  expect(error).toMatchObject({ maxClaimsPerScope: 10 });
  expect(error.retryAfterMs).toBeGreaterThan(0);
  expect(error.retryAfterMs).toBeLessThanOrEqual(60_000);
  expect(await begin('full', 'known')).toMatchObject({ kind: 'claimed' });
  expect(await begin('another', 'one more')).toMatchObject({ kind: 'claimed' });
  clock.advance(60_000);
  await expect.poll(() => begin('full', 'later').catch(() => undefined)).toMatchObject({ kind: 'claimed' });
});

test('I9, I13: an unknown outcome stays after its retention, until its own full scope needs the room', async () => {
  const clock = createFakeClock();
  const claims = createPostgresClaimStore(pool, { schema: 'bounds', clock, maxClaimsPerScope: 3 });
  const forgotten: unknown[] = [];
  claims.onForgotten?.((id) => forgotten.push(id));
  const begin = async (key: string, token = key) =>
    claims.begin({ scope: 'payments', key }, { ...BEGIN, dispatch: true, token });
  // The first begin of a process learns the server's time, and marks nothing before.
  await claims.begin({ scope: 'another', key: 'first' }, { ...BEGIN, token: 'first' });
  expect([await begin('a'), await begin('b'), await begin('c')]).toMatchObject(Array(3).fill({ dispatched: true }));
  await expect.poll(() => begin('d').catch((error) => error.code)).toBe('scope_full');
  clock.advance(1_000);
  expect(await begin('a', 'retry')).toEqual({ kind: 'orphan' });
  await expect.poll(() => begin('e').then(({ kind }) => kind)).toBe('claimed');
  expect(forgotten).toHaveLength(1);
  expect(await claims.inspect(forgotten[0] as { scope: string; key: string })).toBeUndefined();
});

test('options that make no sense are refused', () => {
  expect(() => createPostgresStore(pool, { schema: 'x"; drop' })).toThrow(OptionError);
  expect(() => createPostgresStore(pool, { deadlineMs: 0 })).toThrow(OptionError);
  expect(() => createPostgresClaimStore(pool, { maxClaimsPerScope: 1.5 })).toThrow(OptionError);
});

test('without its tables, a store says how to get them', async () => {
  const store = createPostgresStore(pool, { schema: 'nowhere' });
  await expect(store.ready?.()).rejects.toThrow(StoreUnavailableError);
  const error = await Promise.resolve(store.consume('a', 'GET /', windowSet, 1)).catch((thrown) => thrown);
  expect(error).toMatchObject({ code: 'store_unavailable', sent: false });
  expect(error.cause.message).toBe('the schema "nowhere" is missing or incomplete: call migrate');
});

test('processes may migrate at the same time, and again', async () => {
  await Promise.all(Array.from({ length: 5 }, () => migrate(pool, { schema: 'together' })));
  await createPostgresStore(pool, { schema: 'together' }).ready?.();
});
