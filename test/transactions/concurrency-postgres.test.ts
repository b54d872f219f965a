import pg from 'pg';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { Logger } from '../../src/base/logger.ts';
import { createPostgresClaimStore } from '../../src/stores/postgres/claims.ts';
import { createFakeClock } from '../../src/testing/fake-clock.ts';
import type { TransactionalIdempotencyOptions } from '../../src/transactions/options.ts';
import { createTransactionalIdempotency } from '../../src/transactions/transactional-idempotency.ts';
import { migrated, newPool, sharedUrl } from '../support/postgres.ts';

const schema = 'transactions_concurrency';
const pool = await migrated(newPool({ max: 20 }), schema);
await pool.query('drop table if exists counters; create table counters (id text primary key, n integer not null)');
beforeEach(() =>
  pool.query(`delete from ${schema}.claims; delete from counters; insert into counters values ('a', 0)`),
);
const counter = async () => (await pool.query("select n from counters where id = 'a'")).rows[0].n;
const claims = async (of = schema) => (await pool.query(`select count(*)::int as n from ${of}.claims`)).rows[0].n;

/** Another process, as far as the database can tell: no two of them share anything. */
const make = (options: TransactionalIdempotencyOptions = {}, client = pool) =>
  createTransactionalIdempotency(client, { schema, deadlineMs: 5_000, ...options });
const REQUEST = { amount: 5 };
const increment = (transaction: pg.PoolClient) => transaction.query("update counters set n = n + 1 where id = 'a'");
const deferred = () => {
  let resolve = (): void => {};
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
};
/** Begins a run that stays open until `end`. */
async function started(idempotency = make()) {
  const gate = deferred();
  const result = idempotency.run('k', REQUEST, async (transaction) => {
    await increment(transaction);
    await gate.promise;
    return 'first';
  });
  await expect.poll(() => idempotency.held).toBe(1);
  return { result, end: gate.resolve };
}

describe('I5: a duplicate in another process', () => {
  it('waits for the first, and gets its value', async () => {
    const first = await started();
    const second = make().run('k', REQUEST, () => 'second');
    const different = make().run('k', { other: 1 }, () => 'x');
    await expect.poll(async () => (await pool.query(WAITING)).rows[0].n).toBe(2);
    first.end();
    expect(await first.result).toEqual({ kind: 'executed', value: 'first' });
    expect(await second).toEqual({ kind: 'replayed', value: 'first' });
    expect(await different).toMatchObject({ kind: 'refused', reason: 'mismatch' });
    expect(await counter()).toBe(1);
  });

  it('is refused after waitMs, and the settings of the connection stay as they were', async () => {
    const first = await started();
    const one = newPool({ max: 1 });
    await one.query("set lock_timeout = '7s'");
    const refused = await make({ waitMs: 20 }, one).run('k', REQUEST, () => 'second');
    expect(refused).toMatchObject({ kind: 'refused', reason: 'in_progress', retryAfterMs: 1_000 });
    first.end();
    await first.result;
    await make({}, one).run('other', REQUEST, async (transaction) => {
      expect((await transaction.query('show lock_timeout')).rows).toEqual([{ lock_timeout: '7s' }]);
    });
  });

  it('executes if the first is rolled back', async () => {
    const gate = deferred();
    const idempotency = make();
    const first = idempotency.run('k', REQUEST, () => gate.promise.then(() => Promise.reject(new Error('mine'))));
    await expect.poll(() => idempotency.held).toBe(1);
    const second = make().run('k', REQUEST, () => 'second');
    await expect.poll(async () => (await pool.query(WAITING)).rows[0].n).toBe(1);
    gate.resolve();
    await expect(first).rejects.toThrow('mine');
    expect(await second).toEqual({ kind: 'executed', value: 'second' });
  });

  it('T1: of another scope, or another schema, is not in the way', async () => {
    const first = await started();
    expect(await make().run({ scope: 'other', key: 'k' }, REQUEST, () => 1)).toMatchObject({ kind: 'executed' });
    await migrated(pool, 'transactions_other');
    const other = make({ schema: 'transactions_other', waitMs: 0 });
    expect(await other.run('k', REQUEST, () => 1)).toMatchObject({ kind: 'executed' });
    first.end();
    await first.result;
  });

  it('with a claim with a lease is refused at once', async () => {
    const first = await started();
    const store = createPostgresClaimStore(pool, { schema, deadlineMs: 5_000 });
    const command = { token: 't', fingerprint: 'f', retentionMs: 1_000, leaseMs: 100, dispatch: false } as const;
    const reply = await store.begin({ scope: '', key: 'k' }, { ...command, onOrphan: 'reject' });
    expect(reply).toEqual({ kind: 'in_progress', remainingMs: 1_000 });
    first.end();
    await first.result;
  });

  it('T1: with a claim with a lease is refused at once if the transaction took a released key', async () => {
    const store = createPostgresClaimStore(pool, { schema, deadlineMs: 5_000 });
    const id = { scope: '', key: 'k' };
    const command = { token: 't', fingerprint: 'f', retentionMs: 60_000, leaseMs: 60_000, dispatch: false } as const;
    const begun = await store.begin(id, { ...command, onOrphan: 'reject' });
    if (begun.kind !== 'claimed') throw new Error(begun.kind);
    await store.abandon(id, { ...command, generation: begun.generation, releasedRetentionMs: 60_000 });
    const opened = await make().open({ ...id, fingerprint: 'f', dispatch: 'explicit' });
    if (opened.kind !== 'claimed') throw new Error(opened.kind);
    // Commands of one turn are in one statement, so a key of another scope would wait, too.
    const [reply, other] = await Promise.all([
      store.begin(id, { ...command, onOrphan: 'reject' }),
      store.begin({ scope: 'other', key: 'k' }, { ...command, onOrphan: 'reject' }),
    ]);
    expect(reply).toEqual({ kind: 'in_progress', remainingMs: 1_000 });
    expect(other).toMatchObject({ kind: 'claimed' });
    await opened.claim.abandon();
  });
});

const WAITING = "select count(*)::int as n from pg_locks where locktype = 'advisory' and not granted";

describe.each(['repeatable read', 'serializable'] as const)('%s', (isolation) => {
  it('executes each of several keys once, each sent by several processes', async () => {
    const processes = Array.from({ length: 3 }, () => make({ isolation }));
    const keys = Array.from({ length: 5 }, (_, i) => `key ${i}`);
    const runs = keys.flatMap((key) =>
      processes.map((each) => each.run(key, REQUEST, async (transaction) => void (await increment(transaction)))),
    );
    const results = await Promise.allSettled(runs);
    // More than three conflicts in a row are an error, after which nothing is left.
    const executed = results.filter((one) => one.status === 'fulfilled' && one.value.kind === 'executed').length;
    expect(await counter()).toBe(executed);
    for (const key of keys)
      await make({ isolation }).run(key, REQUEST, async (transaction) => void (await increment(transaction)));
    expect(await counter()).toBe(5);
    expect(await claims()).toBe(5);
  });

  it('keys alone do not conflict', async () => {
    const idempotency = make({ isolation });
    const execute = vi.fn((_transaction: pg.PoolClient) => 1);
    const runs = Array.from({ length: 60 }, (_, i) => idempotency.run(`key ${i}`, REQUEST, execute));
    expect(new Set((await Promise.all(runs)).map(({ kind }) => kind))).toEqual(new Set(['executed']));
    expect(execute).toHaveBeenCalledTimes(60);
  });

  it('repeats an operation three times at most', async () => {
    const idempotency = make({ isolation });
    let tries = 0;
    const conflicting = idempotency.run('k', REQUEST, async (transaction) => {
      tries++;
      await transaction.query('select n from counters');
      await pool.query("update counters set n = n + 1 where id = 'a'");
      await increment(transaction);
    });
    await expect(conflicting).rejects.toMatchObject({ code: '40001' });
    expect(tries).toBe(4);
    expect(await counter()).toBe(4);
    expect(await claims()).toBe(0);
  });
});

describe('what is in the way', () => {
  it('a pool without a free connection: nothing runs, and the connection is not lost', async () => {
    const one = newPool({ max: 1 });
    const busy = await one.connect();
    const idempotency = make({ deadlineMs: 30, waitMs: 0, logger: false }, one);
    const execute = vi.fn();
    expect(await idempotency.run('k', REQUEST, execute)).toMatchObject({
      kind: 'unavailable',
      error: { code: 'store_timeout' },
    });
    busy.release();
    expect(await make({}, one).run('k', REQUEST, () => 1)).toMatchObject({ kind: 'executed' });
    expect(execute).not.toHaveBeenCalled();
    expect(one.idleCount).toBe(1);
  });

  it('statement_timeout: nothing runs while the key is in use', async () => {
    const first = await started();
    const hasty = newPool({ statement_timeout: 20 });
    const result = await make({ logger: false }, hasty).run('k', REQUEST, () => 'second');
    expect(result).toMatchObject({ kind: 'unavailable', error: { cause: { code: '57014' } } });
    first.end();
    expect(await first.result).toMatchObject({ kind: 'executed' });
  });

  it('a process that stands still: the server ends its transaction', async () => {
    const still = { now: () => 0, after: () => () => undefined };
    const stopped = make({ maxRunMs: 100, deadlineMs: 100, timers: still, logger: false });
    const gate = deferred();
    const first = stopped.run('k', REQUEST, (transaction) => increment(transaction).then(() => gate.promise));
    await expect.poll(() => stopped.held).toBe(1);
    expect(await make().run('k', REQUEST, () => 'second')).toEqual({ kind: 'executed', value: 'second' });
    gate.resolve();
    expect(await first).toMatchObject({ kind: 'unavailable' });
    expect(await counter()).toBe(0);
    const shorter = newPool({ options: '-c idle_in_transaction_session_timeout=7s' });
    const show = (client = pool) =>
      make({}, client).run(crypto.randomUUID(), REQUEST, async (transaction) => {
        const { rows } = await transaction.query('show idle_in_transaction_session_timeout');
        return rows[0].idle_in_transaction_session_timeout;
      });
    expect([await show(), await show(shorter)]).toMatchObject([{ value: '65s' }, { value: '7s' }]);
  });

  it('a read-only server: nothing runs', async () => {
    const log = vi.fn<Logger>();
    const replica = newPool({ options: '-c default_transaction_read_only=on' });
    const execute = vi.fn();
    const result = await make({ logger: log }, replica).run('k', REQUEST, execute);
    expect(result).toMatchObject({
      kind: 'unavailable',
      error: { code: 'store_unavailable', cause: { code: '25006' } },
    });
    expect(execute).not.toHaveBeenCalled();
    expect(log.mock.calls[0]?.[0]).toContain('the store for idempotency keys fails');
  });

  it('a wrong set-up is an error that says what to do', async () => {
    const missing = make({ schema: 'nowhere', logger: false });
    await expect(missing.ready()).rejects.toMatchObject({ code: 'store_setup' });
    const result = await missing.run('k', REQUEST, () => 1);
    expect(result).toMatchObject({ kind: 'unavailable', error: { code: 'store_setup' } });
    expect((result as unknown as { error: Error }).error.message).toContain('call migrate');
    const ended = new pg.Pool({ connectionString: sharedUrl() });
    const idempotency = make({ logger: false }, ended);
    await ended.end();
    expect(await idempotency.run('k', REQUEST, () => 1)).toMatchObject({ error: { code: 'store_setup' } });
  });

  it('a handler that rolls back, or commits, itself', async () => {
    const log = vi.fn<Logger>();
    const idempotency = make({ logger: log });
    const rolledBack = idempotency.run('k', REQUEST, async (transaction) => {
      await increment(transaction);
      await transaction.query('rollback');
    });
    await expect(rolledBack).rejects.toMatchObject({ code: 'rolled_back' });
    expect(await counter()).toBe(0);
    const committed = await idempotency.run('k', REQUEST, async (transaction) => {
      await increment(transaction);
      await transaction.query('commit');
      return 'mine';
    });
    expect(committed).toEqual({ kind: 'executed', value: 'mine' });
    expect(log.mock.lastCall?.[0]).toContain('committed the transaction of its idempotency key itself');
    expect(await idempotency.run('k', REQUEST, () => 'other')).toEqual({ kind: 'replayed', value: 'mine' });
    // As for a gate whose handler answers 500: what is committed stays, and the key is used.
    const failed = idempotency.run('k2', REQUEST, async (transaction) => {
      await increment(transaction);
      await transaction.query('commit');
      throw new Error('failed after its commit');
    });
    await expect(failed).rejects.toThrow('failed after its commit');
    expect(await counter()).toBe(2);
    expect(await idempotency.run('k2', REQUEST, () => 'other')).toMatchObject({ kind: 'refused', reason: 'not_kept' });
  });
});

describe('bounds', async () => {
  // Their clock stands still, so no other store may sweep their table.
  const fake = 'transactions_fake';
  await migrated(pool, fake);
  beforeEach(() => pool.query(`delete from ${fake}.claims`));

  it('T1, I13: a full scope is refused for new keys, and others are not', async () => {
    const clock = createFakeClock();
    const idempotency = make({ schema: fake, clock, maxClaimsPerScope: 3, retentionMs: 1_000, maxRunMs: 900 });
    const run = (scope: string, key: string) => idempotency.run({ scope, key }, REQUEST, () => key);
    for (let i = 0; i < 3; i++) expect(await run('full', `k${i}`)).toMatchObject({ kind: 'executed' });
    let more = 0;
    await expect
      .poll(() => run('full', `one more ${more++}`))
      .toMatchObject({ kind: 'refused', reason: 'too_many_keys' });
    expect(await run('full', 'k1')).toEqual({ kind: 'replayed', value: 'k1' });
    expect(await run('other', 'one more')).toMatchObject({ kind: 'executed' });
    clock.advance(1_000);
    await expect.poll(() => run('full', 'later'), { timeout: 10_000 }).toMatchObject({ kind: 'executed' });
  });

  it('I8: a key is free after its retention, and its row is used again', async () => {
    const clock = createFakeClock();
    const idempotency = make({ schema: fake, clock, retentionMs: 1_000, maxRunMs: 900 });
    expect(await idempotency.run('k', REQUEST, () => 1)).toMatchObject({ kind: 'executed' });
    clock.advance(999);
    expect(await idempotency.run('k', { other: 1 }, () => 2)).toMatchObject({ reason: 'mismatch' });
    clock.advance(1);
    expect(await idempotency.run('k', { other: 1 }, () => 2)).toEqual({ kind: 'executed', value: 2 });
    expect(await idempotency.run('k', { other: 1 }, () => 3)).toEqual({ kind: 'replayed', value: 2 });
    expect(await claims(fake)).toBe(1);
  });

  it('close() refuses new calls, and waits for open transactions', async () => {
    const idempotency = make();
    const { result, end } = await started(idempotency);
    const closing = idempotency.close();
    await expect(idempotency.run('other', REQUEST, () => 1)).rejects.toMatchObject({ code: 'closed' });
    end();
    expect(await result).toMatchObject({ kind: 'executed' });
    await closing;
    expect(idempotency.held).toBe(0);
  });

  it.each([
    [{ onOrphan: 'reexecute' }, /onOrphan/],
    [{ isolation: 'none' }, /isolation/],
    [{ waitMs: -1 }, /waitMs/],
    [{ retentionMs: 60_000 }, /retentionMs: must be longer than maxRunMs, which is 60000/],
    [{ maxClaimsPerScope: 0 }, /maxClaimsPerScope/],
    [{ schema: 'a"b' }, /schema/],
  ])('refuses the options %j', (options, message) => {
    expect(() => make(options as unknown as TransactionalIdempotencyOptions)).toThrow(message);
  });

  it('refuses settings of claims with leases in a request', async () => {
    const open = { scope: 'app', key: 'k', fingerprint: 'f', dispatch: 'explicit' } as const;
    await expect(make().open({ ...open, onStoreFailure: 'bypass' })).rejects.toThrow(/onStoreFailure.*no lease/);
    await expect(make().open({ ...open, reconcile: () => 'unknown' })).rejects.toThrow(/reconcile/);
  });
});
