import { sql } from 'kysely';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Database } from '../../src/db/database.ts';
import { openInMemory } from '../../src/db/embedded.ts';
import { migrate } from '../../src/db/migrate.ts';
import { MockMailbox } from '../../src/providers/mock/mailbox.ts';
import { cleanUpLater } from '../support/clean-up.ts';

let db: Database;

beforeAll(async () => {
  ({ db } = await openInMemory());
  cleanUpLater(() => db.destroy());
  await migrate(db);
});

const insert = (id: string) =>
  db.insertInto('applications').values({ id, name: id, environment: 'development', created_at: new Date(0) });

describe('the statements of the embedded database', () => {
  test('a statement can be used again after it has failed, with other values', async () => {
    await insert('app_a').execute();
    await expect(insert('app_a').execute()).rejects.toMatchObject({ code: '23505' });
    const result = await insert('app_b').executeTakeFirst();
    expect(result.numInsertedOrUpdatedRows).toBe(1n);
    const update = (id: string) => db.updateTable('applications').set({ name: 'new' }).where('id', '=', id);
    expect((await update('app_b').executeTakeFirst()).numUpdatedRows).toBe(1n);
    expect((await update('app_c').executeTakeFirst()).numUpdatedRows).toBe(0n);
  });

  test('a statement that PostgreSQL refuses to prepare fails each time, and the next one runs', async () => {
    const wrong = () => db.selectFrom('applications').select(sql<number>`nothing`.as('x')).execute();
    for (const _ of [1, 2]) await expect(wrong()).rejects.toMatchObject({ code: '42703' });
    expect(await db.selectFrom('applications').select('id').where('id', '=', 'app_z').execute()).toEqual([]);
  });

  test('a failed statement undoes the transaction that it is in', async () => {
    const broken = db.transaction().execute(async (transaction) => {
      await transaction.updateTable('applications').set({ name: 'gone' }).where('id', '=', 'app_a').execute();
      await transaction
        .insertInto('applications')
        .values({ id: 'app_a' } as never)
        .execute();
    });
    await expect(broken).rejects.toThrow();
    expect(await db.selectFrom('applications').select('name').where('id', '=', 'app_a').execute()).toEqual([
      { name: 'app_a' },
    ]);
  });

  test('bytes, lists, texts and dates come back as they were', async () => {
    await db
      .insertInto('accounts')
      .values({
        ...{
          id: 'acc_a',
          application_id: 'app_a',
          scope_id: null,
          provider: 'mock',
          provider_user_id: 'é"\\',
          name: '',
        },
        ...{ status: 'running', secret: Uint8Array.of(0, 255, 92), proxy: null, created_at: new Date(1_234) },
        ...{ sync: sql`'{}'::jsonb`, metadata: sql`'{}'::jsonb` },
      } as never)
      .execute();
    const account = await db.selectFrom('accounts').selectAll().where('id', '=', 'acc_a').executeTakeFirstOrThrow();
    expect(account).toMatchObject({ scope_id: null, provider_user_id: 'é"\\', name: '', created_at: new Date(1_234) });
    expect([...(account.secret ?? [])]).toEqual([0, 255, 92]);
    const mail = {
      messageId: '<1>',
      thread: 't',
      recipients: ['a,b', '"c"\\', 'NULL', ''],
      raw: Uint8Array.of(1),
      size: 1,
    };
    const mailbox = new MockMailbox(db, Date.now);
    const { id } = await mailbox.deliver('acc_a', mail);
    expect((await mailbox.byId('acc_a', id))?.recipients).toEqual(mail.recipients);
  });

  test('a plan that was made while a table was empty is not kept', async () => {
    const { rows } = await sql<{ plan_cache_mode: string }>`show plan_cache_mode`.execute(db);
    expect(rows).toEqual([{ plan_cache_mode: 'force_custom_plan' }]);
  });
});
