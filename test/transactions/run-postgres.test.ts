import type { PGlite } from '@electric-sql/pglite';
import { afterFile } from 'headgate-testbed/after-file';
import type pg from 'pg';
import postgres from 'postgres';
import { afterAll, beforeAll, beforeEach, describe, expect, expectTypeOf, it, vi } from 'vitest';
import { createIdempotency } from '../../src/idempotency/idempotency.ts';
import { createPostgresClaimStore } from '../../src/stores/postgres/claims.ts';
import { databaseOf } from '../../src/stores/postgres/client.ts';
import type { Connection } from '../../src/stores/postgres/database.ts';
import type { TransactionOf } from '../../src/transactions/client-transaction.ts';
import type { TransactionalIdempotencyOptions } from '../../src/transactions/options.ts';
import {
  createTransactionalIdempotency,
  type TransactionalIdempotency,
} from '../../src/transactions/transactional-idempotency.ts';
import { CLIENTS, migrated, sharedUrl } from '../support/postgres.ts';

expectTypeOf<TransactionOf<pg.Pool>>().toEqualTypeOf<pg.PoolClient>();
expectTypeOf<TransactionOf<postgres.Sql>>().toEqualTypeOf<postgres.TransactionSql>();
expectTypeOf<TransactionOf<PGlite>>().toEqualTypeOf<import('@electric-sql/pglite').Transaction>();

const REQUEST = { amount: 5 };
const deferred = () => {
  let resolve = (): void => {};
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
};

/** The statements of a client's own transaction. */
const insertWith: Record<string, (transaction: object, id: string) => Promise<unknown>> = {
  pg: (transaction, id) => (transaction as pg.PoolClient).query('insert into rows_of_pg values ($1)', [id]),
  'postgres.js': async (transaction, id) => {
    const sql = transaction as postgres.TransactionSql;
    await sql`insert into rows_of_postgres_js values (${id})`;
  },
  PGlite: (transaction, id) => (transaction as unknown as PGlite).query('insert into rows_of_pglite values ($1)', [id]),
};

describe('postgres.js', () => {
  const schema = 'transactions_of_postgres_js';
  const sql = postgres(sharedUrl(), { max: 1, onnotice: () => undefined });
  afterFile(() => sql.end());
  const make = (options: TransactionalIdempotencyOptions = {}) =>
    createTransactionalIdempotency(sql, { schema, deadlineMs: 5_000, logger: false, ...options });
  const rows = async () => (await sql`select id from late_rows`).map(({ id }) => id);
  beforeAll(async () => {
    await migrated(sql, schema);
    await sql`drop table if exists late_rows`;
    await sql`create table late_rows (id text)`;
  });

  it('a savepoint writes nothing after the end, neither in the next transaction of its connection', async () => {
    const overdue = deferred();
    const late = vi.fn();
    const first = make({ maxRunMs: 20 }).run('first', REQUEST, (transaction) =>
      transaction.savepoint(async (inner) => {
        await overdue.promise;
        try {
          await inner`insert into late_rows values ('late')`;
        } catch (error) {
          late(error);
          throw error;
        }
      }),
    );
    await expect(first).rejects.toThrow('is over');
    const second = make().run('second', REQUEST, (transaction) =>
      transaction.savepoint(async (inner) => {
        await inner`insert into late_rows values ('second')`;
        overdue.resolve();
        await expect.poll(() => late.mock.calls.length).toBe(1);
      }),
    );
    expect(await second).toMatchObject({ kind: 'executed' });
    expect(await rows()).toEqual(['second']);
  });

  it('a statement is not sent if it is first awaited after the end', async () => {
    const made: PromiseLike<unknown>[] = [];
    await make().run('lazy', REQUEST, (transaction) => void made.push(transaction`insert into late_rows values ('x')`));
    await expect((async () => made[0])()).rejects.toThrow('is over');
    expect(await rows()).not.toContain('x');
  });

  it('a handler whose connection was lost writes nothing on the next one', async () => {
    const written = vi.fn();
    const run = make().run('lost', REQUEST, async (transaction) => {
      await transaction`select pg_terminate_backend(pg_backend_pid())`.catch(() => undefined);
      await expect
        .poll(() =>
          sql`select 1`.then(
            () => true,
            () => false,
          ),
        )
        .toBe(true);
      await transaction`insert into late_rows values ('lost')`.then(written);
    });
    await expect(run).rejects.toThrow('is over');
    expect(written).not.toHaveBeenCalled();
    expect(await rows()).not.toContain('lost');
  });
});

describe.each(Object.entries(CLIENTS))('%s', (name, create) => {
  const client = create();
  const database = databaseOf('client', client);
  const suffix = name.toLowerCase().replace('.', '_');
  const schema = `transactions_${suffix}`;
  const table = `rows_of_${suffix}`;
  const insert = insertWith[name] as (transaction: object, id: string) => Promise<unknown>;
  const rows = async () => (await database.query(`select id from ${table} order by id`, [])).map(({ id }) => id);
  const claims = async () => Number((await database.query(`select count(*) as n from ${schema}.claims`, []))[0]?.n);
  const make = (options: TransactionalIdempotencyOptions = {}) =>
    createTransactionalIdempotency(client, {
      schema,
      deadlineMs: 5_000,
      ...options,
    }) as TransactionalIdempotency<object>;

  beforeAll(async () => {
    await migrated(client, schema);
    await database.query(`drop table if exists ${table}; create table ${table} (id text primary key)`, []);
  });
  beforeEach(() => database.query(`delete from ${schema}.claims; delete from ${table}`, []));
  afterAll(() => database.query(`drop table ${table}`, []));

  it('executes once, and replays the value', async () => {
    const idempotency = make();
    await idempotency.ready();
    const execute = vi.fn(async (transaction: object) => {
      await insert(transaction, 'a');
      return { id: 'a', at: 1 };
    });
    const id = { scope: 'app', key: 'k\u0000\ud800' };
    expect(await idempotency.run(id, REQUEST, execute)).toEqual({ kind: 'executed', value: { id: 'a', at: 1 } });
    expect(await idempotency.run(id, REQUEST, execute)).toEqual({ kind: 'replayed', value: { id: 'a', at: 1 } });
    expect(await idempotency.run({ ...id, scope: 'other' }, REQUEST, () => undefined)).toEqual({
      kind: 'executed',
      value: undefined,
    });
    expect(await idempotency.run({ ...id, scope: 'other' }, REQUEST, () => 1)).toEqual({
      kind: 'replayed',
      value: undefined,
    });
    expect(await idempotency.run(id, { amount: 6 }, execute)).toMatchObject({ kind: 'refused', reason: 'mismatch' });
    expect(execute).toHaveBeenCalledTimes(1);
    expect(await rows()).toEqual(['a']);
    expect(idempotency.held).toBe(0);
  });

  it('rolls back what an operation wrote that throws, and frees the key', async () => {
    const idempotency = make();
    const thrown = new Error('mine');
    const failing = idempotency.run('k', REQUEST, async (transaction) => {
      await insert(transaction, 'a');
      throw thrown;
    });
    await expect(failing).rejects.toBe(thrown);
    expect(await rows()).toEqual([]);
    expect(await claims()).toBe(0);
    const again = await idempotency.run('k', { other: 1 }, async (transaction) =>
      insert(transaction, 'a').then(() => 1),
    );
    expect(again).toEqual({ kind: 'executed', value: 1 });
  });

  it('does not answer a success if a statement failed whose error the operation swallowed', async () => {
    const idempotency = make({ logger: false });
    const swallowing = idempotency.run('k', REQUEST, async (transaction) => {
      await insert(transaction, 'a');
      await insert(transaction, 'a').catch(() => undefined);
      return 1;
    });
    await expect(swallowing).rejects.toThrow();
    expect(await rows()).toEqual([]);
    expect(await claims()).toBe(0);
  });

  it('refuses a use of the transaction after its end', async () => {
    const idempotency = make();
    let leaked: object = {};
    await idempotency.run('k', REQUEST, async (transaction) => {
      leaked = transaction;
    });
    await expect((async () => insert(leaked, 'b'))()).rejects.toThrow(/transaction of this idempotency key is over/);
  });

  it('I7: stores a value that is too large as an outcome without it', async () => {
    const idempotency = make({ maxKeptBytes: 10 });
    expect(await idempotency.run('k', REQUEST, () => 'x'.repeat(11))).toMatchObject({ kind: 'executed' });
    expect(await idempotency.run('k', REQUEST, () => 'x')).toEqual({
      kind: 'refused',
      reason: 'not_kept',
      status: 'ok',
    });
  });

  it('I5: a duplicate of this process waits, and another request is refused at once', async () => {
    const idempotency = make();
    const gate = deferred();
    const first = idempotency.run('k', REQUEST, () => gate.promise.then(() => 'first'));
    await expect.poll(() => idempotency.held).toBe(1);
    const second = idempotency.run('k', REQUEST, () => 'second');
    expect(await idempotency.run('k', { other: 1 }, () => 'x')).toMatchObject({ reason: 'mismatch' });
    expect(await idempotency.run('k', REQUEST, () => 'x', { waitMs: 0 })).toMatchObject({
      kind: 'refused',
      reason: 'in_progress',
    });
    const controller = new AbortController();
    const aborted = idempotency.run('k', REQUEST, () => 'x', { signal: controller.signal });
    controller.abort();
    expect(await aborted).toEqual({ kind: 'refused', reason: 'aborted' });
    expect(idempotency.waiting).toBe(1);
    gate.resolve();
    expect(await first).toEqual({ kind: 'executed', value: 'first' });
    expect(await second).toEqual({ kind: 'replayed', value: 'first' });
  });

  it('rolls back a transaction that takes too long', async () => {
    const idempotency = make({ maxRunMs: 20, logger: false });
    const slow = idempotency.run('k', REQUEST, async (transaction) => {
      await insert(transaction, 'a');
      await expect.poll(() => idempotency.held).toBe(0);
      return 1;
    });
    await expect(slow).rejects.toMatchObject({ code: 'rolled_back' });
    expect(await rows()).toEqual([]);
    expect(await make().run('k', REQUEST, () => 2)).toEqual({ kind: 'executed', value: 2 });
  });

  it('takes part in a transaction of the user', async () => {
    const idempotency = make();
    const query: Connection['query'] = (text, values) => database.query(text, values);
    const inTransaction = (work: (executor: Connection['query']) => Promise<unknown>) =>
      database.transaction((connection) => work((text, values) => connection.query(text, values)));
    const claimed = async (commits: boolean) =>
      inTransaction(async (executor) => {
        const claim = await idempotency.claim<number>(executor, 'k', REQUEST);
        if (claim.kind !== 'claimed') return claim;
        await executor(`insert into ${table} values ('a')`, []);
        await idempotency.complete(executor, claim, 7);
        if (!commits) throw new Error('mine');
        return 'done';
      });
    await expect(claimed(false)).rejects.toThrow('mine');
    expect(await rows()).toEqual([]);
    expect(await claimed(true)).toBe('done');
    expect(await claimed(true)).toEqual({ kind: 'replayed', value: 7 });
    expect(await rows()).toEqual(['a']);
    await expect(
      idempotency
        .claim(query, 'no transaction', REQUEST)
        .then((claim) => idempotency.complete(query, claim as never, 1)),
    ).rejects.toMatchObject({ code: 'rolled_back' });
    for (const other of [undefined, { kind: 'replayed', value: 7 }])
      await expect(idempotency.complete(query, other as never, 1)).rejects.toThrow(/^claim: must be what claim\(\)/);
    const forgetful = await inTransaction((executor) => idempotency.claim(executor, 'forgotten', REQUEST));
    expect(forgetful).toMatchObject({ kind: 'claimed' });
    expect(await idempotency.run('forgotten', REQUEST, () => 1)).toMatchObject({ reason: 'not_kept' });
  });

  it('never executes a key that a claim with a lease owns, and the other way round', async () => {
    const idempotency = make();
    const leased = createIdempotency({ store: createPostgresClaimStore(client, { schema, deadlineMs: 5_000 }) });
    expect(await idempotency.run('a', REQUEST, () => 'transaction')).toMatchObject({ kind: 'executed' });
    expect(await leased.run('a', REQUEST, () => 'lease')).toEqual({ kind: 'replayed', value: 'transaction' });
    expect(await leased.run('b', REQUEST, () => 'lease')).toMatchObject({ kind: 'executed' });
    expect(await idempotency.run('b', REQUEST, () => 'transaction')).toEqual({ kind: 'replayed', value: 'lease' });
    const gate = deferred();
    const running = leased.run('c', REQUEST, () => gate.promise);
    await expect.poll(() => leased.held).toBe(1);
    await expect
      .poll(() => idempotency.run('c', REQUEST, () => 1, { waitMs: 0 }))
      .toMatchObject({ kind: 'refused', reason: 'in_progress' });
    gate.resolve();
    await running;
    expect((await leased.inspect({ scope: '', key: 'a' }))?.state).toBe('completed');
    await leased.idle();
  });
});
