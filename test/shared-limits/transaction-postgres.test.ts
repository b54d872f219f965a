/** Changes of shared limits that commit together with the rows of their caller. */
import type { PGlite } from '@electric-sql/pglite';
import { afterFile } from 'headgate-testbed/after-file';
import pg from 'pg';
import type { Sql } from 'postgres';
import { beforeAll, describe, expect, it } from 'vitest';
import { createPostgresAdjustments, type Executor, migrate, type PostgresClient } from '../../src/postgres.ts';
import {
  AdjustmentConflictError,
  createSharedLimits,
  type SharedLimits,
  type SharedLimitsOptions,
} from '../../src/shared-limits/index.ts';
import { databaseOf } from '../../src/stores/postgres/client.ts';
import { CLIENTS, migrated } from '../support/postgres.ts';

const SETTINGS = { deadlineMs: 10_000, logger: false } as const;

/** Runs `work` in a transaction of a client, as its users do: it commits if `work` resolves. */
async function inTransaction<T>(client: PostgresClient, work: (executor: Executor) => Promise<T>): Promise<T> {
  if (client instanceof pg.Pool) {
    const connection = await client.connect();
    try {
      await connection.query('begin');
      const result = await work((text, values) => connection.query(text, [...values]));
      await connection.query('commit');
      return result;
    } catch (error) {
      await connection.query('rollback');
      throw error;
    } finally {
      connection.release();
    }
  }
  if ('begin' in client)
    return (client as unknown as Sql).begin((sql) =>
      work((text, values) => (values.length === 0 ? sql.unsafe(text) : sql.unsafe(text, [...values]))),
    ) as Promise<T>;
  return (client as PGlite).transaction((transaction) =>
    work(async (text, values) =>
      values.length === 0
        ? ((await transaction.exec(text)).at(-1)?.rows as object[])
        : transaction.query(text, [...values]),
    ),
  );
}

describe.each(Object.entries(CLIENTS))('a change in a transaction of %s', (name, create) => {
  const client = create();
  const schema = `transaction_${name.replace(/\W/g, '_').toLowerCase()}`;
  const query = (text: string) => databaseOf('client', client).query(text, []);
  const audited = async () =>
    (await query(`select subject from ${schema}.audit order by 1`)).map(({ subject }) => subject);
  const note = (executor: Executor, subject: string) => executor(`insert into ${schema}.audit values ($1)`, [subject]);
  const storeIn = (executor: Executor) => createPostgresAdjustments(executor, { schema, ...SETTINGS });

  beforeAll(async () => {
    await migrated(client, schema);
    await query(`create table ${schema}.audit (subject text)`);
  });

  /** Shared limits of a process, which reads the store only if it is told so. */
  async function process(options: Partial<SharedLimitsOptions> = {}): Promise<SharedLimits> {
    const adjustments = createPostgresAdjustments(client, { schema, ...SETTINGS });
    const limits = createSharedLimits({ base: ['60/1m'], adjustments, refreshMs: 60_000, logger: false, ...options });
    afterFile(() => limits.close());
    await limits.refresh();
    return limits;
  }

  const maxOf = (limits: SharedLimits, account: string) => limits.windowSet({ account }).windows.map(({ max }) => max);

  it('is made by the commit, with the rows beside it, and nothing of it before', async () => {
    const [one, other] = [await process(), await process()];
    const change = await inTransaction(client, async (executor) => {
      const changed = await one.put({ account: 'kept' }, ['7/1m'], { by: 'jane', transaction: storeIn(executor) });
      await note(executor, 'kept');
      // PGlite has one connection.
      if (name !== 'PGlite') await other.refresh();
      expect([maxOf(one, 'kept'), maxOf(other, 'kept')]).toEqual([[60], [60]]);
      return changed;
    });
    expect(change).toMatchObject({ limits: [{ target: { account: 'kept' } }] });
    await Promise.all([one.refresh(), other.refresh()]);
    expect([maxOf(one, 'kept'), maxOf(other, 'kept')]).toEqual([[7], [7]]);
    expect(one.state.revision).toBe(change.revision);
    expect(await audited()).toContain('kept');
    expect((await one.history({ limit: 1 }))[0]).toMatchObject({ by: 'jane', version: change.version });
  });

  it('leaves nothing after a rollback, and the next change follows the change before', async () => {
    const limits = await process();
    const before = limits.state.version;
    const failure = inTransaction(client, async (executor) => {
      await limits.put({ account: 'lost' }, ['7/1m'], { by: 'jane', transaction: storeIn(executor) });
      await note(executor, 'lost');
      throw new Error('no audit');
    });
    await expect(failure).rejects.toThrow('no audit');
    await limits.refresh();
    expect([maxOf(limits, 'lost'), limits.state.version, (await audited()).includes('lost')]).toEqual([
      ...[[60], before, false],
    ]);
    expect(await limits.put({ account: 'next' }, ['7/1m'], { by: 'jane' })).toMatchObject({ version: before + 1 });
  });

  it('sees the changes before it in the same transaction', async () => {
    const limits = await process();
    await inTransaction(client, async (executor) => {
      const transaction = storeIn(executor);
      const { version } = await limits.put({ account: 'twice' }, ['7/1m'], { by: 'jane', transaction });
      const stale = limits.put({ account: 'twice' }, ['8/1m'], { by: 'jane', ifVersion: 0, transaction });
      await expect(stale).rejects.toThrow(AdjustmentConflictError);
      await limits.put({ account: 'twice' }, ['9/1m'], { by: 'jane', ifVersion: version, transaction });
      await limits.reset({ account: 'not adjusted' }, { by: 'jane', transaction });
    });
    await limits.refresh();
    expect(maxOf(limits, 'twice')).toEqual([9]);
  });

  it('keeps the settings of the transaction', async () => {
    const limits = await process();
    const show = async (executor: Executor) => JSON.stringify(await executor('show lock_timeout', []));
    await inTransaction(client, async (executor) => {
      const before = await show(executor);
      await limits.put({ account: 'settings' }, ['7/1m'], { by: 'jane', transaction: storeIn(executor) });
      expect(await show(executor)).toBe(before);
    });
  });

  it('migrates in a transaction, all or nothing', async () => {
    const inside = `${schema}_inside`;
    const isThere = async () => (await query(`select to_regclass('${inside}.meta') is not null as it`))[0]?.it;
    await query(`drop schema if exists ${inside} cascade`);
    const failed = inTransaction(client, async (executor) => {
      await migrate(executor, { schema: inside });
      throw new Error('a later migration failed');
    });
    await expect(failed).rejects.toThrow('a later migration failed');
    expect(await isThere()).toBe(false);
    for (let i = 0; i < 2; i++) await inTransaction(client, (executor) => migrate(executor, { schema: inside }));
    expect(await isThere()).toBe(true);
    await inTransaction(client, async (executor) => {
      const limits = createSharedLimits({
        ...{ base: ['60/1m'], refreshMs: 60_000, logger: false },
        adjustments: createPostgresAdjustments(executor, { schema: inside, ...SETTINGS }),
      });
      await limits.put({ account: 'alone' }, ['7/1m'], { by: 'migration' });
      await limits.close();
    });
    expect(await query(`select from ${inside}.adjustments`)).toHaveLength(1);
  });

  it.skipIf(name === 'PGlite')(
    'of two transactions at the same time, one waits, and finds the change of the other',
    async () => {
      const [one, other] = [await process(), await process()];
      let began = (): void => {};
      const hasBegun = new Promise<void>((resolve) => {
        began = resolve;
      });
      const options = { by: 'jane', ifVersion: 0 };
      const first = inTransaction(client, async (executor) => {
        await one.put({ account: 'both' }, ['21/1m'], { ...options, transaction: storeIn(executor) });
        began();
        const waits =
          "select from pg_stat_activity where wait_event_type = 'Lock' and query like '%write_adjustments%'";
        await expect.poll(async () => (await query(waits)).length, { timeout: 10_000 }).toBe(1);
      });
      await Promise.race([hasBegun, first]);
      const second = inTransaction(client, (executor) =>
        other.put({ account: 'both' }, ['22/1m'], { ...options, transaction: storeIn(executor) }),
      );
      await Promise.all([first, expect(second).rejects.toThrow(AdjustmentConflictError)]);
      await other.refresh();
      expect(maxOf(other, 'both')).toEqual([21]);
    },
  );
});

it.each([
  [{}, 'transaction: must have read()'],
  [() => [], 'transaction: must have read()'],
])('refuses %j for a transaction', async (transaction, message) => {
  const { createMemoryAdjustments } = await import('../../src/memory.ts');
  const limits = createSharedLimits({ base: ['60/1m'], adjustments: createMemoryAdjustments() });
  await expect(
    limits.put({ account: 'a' }, ['1/1m'], { by: 'jane', transaction: transaction as never }),
  ).rejects.toThrow(message);
  await limits.close();
  await expect(limits.refresh()).rejects.toThrow('closed');
});
