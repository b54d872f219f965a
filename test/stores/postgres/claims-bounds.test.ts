import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it, vi } from 'vitest';
import { ScopeFullError } from '../../../src/base/errors.ts';
import { createIdempotency } from '../../../src/idempotency/idempotency.ts';
import type { PostgresClaimStoreOptions } from '../../../src/stores/postgres/claim-options.ts';
import { createPostgresClaimStore } from '../../../src/stores/postgres/claims.ts';
import { createFakeClock } from '../../../src/testing/fake-clock.ts';
import { migrated, newPool } from '../../support/postgres.ts';

const BEGIN = { fingerprint: 'f', retentionMs: 1_000, leaseMs: 100, onOrphan: 'reject', dispatch: false } as const;
const schema = 'claims_bounds';
const pool = await migrated(newPool(), schema);
const make = (options: PostgresClaimStoreOptions = {}) =>
  createPostgresClaimStore(pool, { schema, deadlineMs: 10_000, logger: false, ...options });

/** The error of the first key that is refused. The scope is counted beside the commands, so a few keys more fit. */
async function firstRefusal(begin: (key: string) => Promise<unknown>): Promise<ScopeFullError> {
  for (let i = 0; ; i++) {
    const error = await begin(`one more ${i}`).then(
      () => undefined,
      (thrown: ScopeFullError) => thrown,
    );
    if (error !== undefined) return error;
    await sleep(20);
  }
}

it('new claims remove records that are over, so that the table does not grow', async () => {
  const clock = createFakeClock();
  const store = make({ clock });
  const rows = async () => (await pool.query(`select count(*)::int as n from ${schema}.claims`)).rows[0].n;
  for (let round = 0; round < 4; round++) {
    const ids = Array.from({ length: 128 }, (_, i) => ({ scope: 'sweep', key: `${round} ${i}` }));
    await Promise.all(ids.map((id) => store.begin(id, { ...BEGIN, token: id.key })));
    clock.advance(1_000);
  }
  await expect.poll(rows).toBeLessThanOrEqual(256);
  expect(await rows()).toBeGreaterThanOrEqual(128);
});

it('I13, T1: a full scope forgets released keys first; then only its own new keys are refused', async () => {
  const clock = createFakeClock();
  const store = make({ clock, maxClaimsPerScope: 10 });
  const begin = (scope: string, key: string) =>
    store.begin({ scope, key }, { ...BEGIN, retentionMs: 60_000, token: key });
  for (let i = 0; i < 10; i++) await begin('full', `key ${i}`);
  const released = {
    token: 'key 3',
    fingerprint: 'f',
    retentionMs: 60_000,
    releasedRetentionMs: 50_000,
    generation: 1,
  };
  expect(await store.abandon({ scope: 'full', key: 'key 3' }, released)).toEqual({ kind: 'released' });
  const error = await firstRefusal((key) => begin('full', key));
  expect(error).toBeInstanceOf(ScopeFullError);
  expect(error).toMatchObject({ maxClaimsPerScope: 10 });
  expect(error.retryAfterMs).toBeGreaterThan(0);
  expect(error.retryAfterMs).toBeLessThanOrEqual(60_000);
  expect(store.stats().refusedInScope).toBe(1);
  // Its room was taken, before the first refusal.
  expect(await store.inspect({ scope: 'full', key: 'key 3' })).toBeUndefined();
  expect(await begin('full', 'key 0')).toMatchObject({ kind: 'claimed' });
  expect(await begin('another', 'one more')).toMatchObject({ kind: 'claimed' });
  clock.advance(60_000);
  await expect
    .poll(() => begin('full', 'later').catch(() => undefined), { timeout: 10_000 })
    .toMatchObject({
      kind: 'claimed',
    });
});

it('I9, I13: an unknown outcome stays after its retention, until its own full scope needs the room', async () => {
  const clock = createFakeClock();
  const store = make({ clock, maxClaimsPerScope: 3 });
  const forgotten: unknown[] = [];
  store.onForgotten((id) => forgotten.push(id));
  const begin = (key: string, token = key) =>
    store.begin({ scope: 'payments', key }, { ...BEGIN, dispatch: true, token });
  expect([await begin('a'), await begin('b'), await begin('c')]).toMatchObject(Array(3).fill({ dispatched: true }));
  expect(await firstRefusal(begin)).toBeInstanceOf(ScopeFullError);
  clock.advance(1_000);
  expect(await begin('a', 'retry')).toEqual({ kind: 'orphan' });
  // A count that is under way may say that there is room.
  let more = 0;
  await expect
    .poll(async () => (await begin(`new ${more++}`)).kind === 'claimed' && forgotten.length, { timeout: 10_000 })
    .toBe(1);
  expect(store.stats().forgottenUnresolved).toBe(1);
  expect(await store.inspect(forgotten[0] as { scope: string; key: string })).toBeUndefined();
});

it('I9: a begin that arrives after its deadline does nothing, and marks nothing before the time is known', async () => {
  const store = make();
  expect(await store.begin({ scope: 'late', key: 'k' }, { ...BEGIN, token: 't', dispatch: true })).toMatchObject({
    dispatched: false,
  });
  // From the first reply on, the store knows the server's time.
  expect(await store.begin({ scope: 'late', key: 'l' }, { ...BEGIN, token: 't', dispatch: true })).toMatchObject({
    dispatched: true,
  });
  const late = { ...BEGIN, token: 't', deadline: 1 };
  expect(await store.begin({ scope: 'late', key: 'm' }, late)).toEqual({ kind: 'late' });
  expect(store.stats().lateBegins).toBe(1);
});

it('the commands of one turn of the event loop share a statement, and a large value travels alone', async () => {
  const query = vi.spyOn(pool, 'connect');
  const store = make();
  const ids = Array.from({ length: 20 }, (_, i) => ({ scope: 'turn', key: `k${i}` }));
  await Promise.all(ids.map((id) => store.begin(id, { ...BEGIN, retentionMs: 60_000, token: id.key })));
  // One of them is the count of the scope, and one the sweep.
  expect(query.mock.calls.length).toBeLessThanOrEqual(3);
  query.mockRestore();
  const value = 'ü'.repeat(20_000);
  const [id] = ids as [{ scope: string; key: string }];
  const command = { token: 'k0', fingerprint: 'f', retentionMs: 60_000, result: { status: '200', value } };
  expect(await store.complete(id, command)).toEqual({ kind: 'ok' });
  const again = await store.begin(id, { ...BEGIN, token: 'other' });
  expect(again).toEqual({ kind: 'settled', result: { status: '200', value } });
  const list = await store.list(undefined, 1_000);
  expect(list.claims.find(({ key, scope }) => scope === 'turn' && key === 'k0')?.valueBytes).toBe(40_000);
});

it('I12: a wrong set-up is never bypassed', async () => {
  const store = createPostgresClaimStore(pool, { schema: 'nowhere', logger: false });
  await expect(store.ready()).rejects.toMatchObject({ code: 'store_setup' });
  const idempotency = createIdempotency({ store, onStoreFailure: 'bypass' });
  const execute = vi.fn();
  expect(await idempotency.run('k', {}, execute)).toMatchObject({
    kind: 'unavailable',
    error: { code: 'store_setup' },
  });
  expect(execute).not.toHaveBeenCalled();
});

it.each([
  [{ maxClaimsPerScope: 0 }],
  [{ largeValues: { maxBytesPerScope: -1 } }],
  [{ deadlineMs: 0 }],
  [{ prefix: 'x' }],
])('refuses the options %j', (options) => {
  expect(() => make(options as PostgresClaimStoreOptions)).toThrow(/options|must be/);
});
