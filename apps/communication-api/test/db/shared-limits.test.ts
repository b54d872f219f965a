/** Adjusted limits of an older version become shared limits. */
import { type Kysely, sql } from 'kysely';
import { pino } from 'pino';
import { afterAll, describe, expect, test } from 'vitest';
import { up } from '../../src/db/migrations/0014-shared-limits.ts';
import { AccountLimits } from '../../src/limits/account-limits.ts';
import { DATABASES } from '../support/databases.ts';

const route = 'POST /api/v1/emails';
const AT = '2026-03-01T10:00:00.000Z';

describe.each(DATABASES)('the migration on %s', async (_, open) => {
  const { db, close } = await open();
  afterAll(close);

  /** Makes the tables of the older version, with overrides, and migrates them. */
  const migrateOverrides = (overrides: readonly object[]) =>
    db.transaction().execute(async (transaction) => {
      await sql`create table limits_version (application_id text)`.execute(transaction);
      await sql`create table limit_overrides (
        application_id text, provider text, account_id text, route text, windows jsonb, changed_by text,
        changed_at timestamptz
      )`.execute(transaction);
      await sql`insert into limit_overrides
        select * from jsonb_populate_recordset(null::limit_overrides, ${JSON.stringify(overrides)}::jsonb)`.execute(
        transaction,
      );
      await up(transaction as unknown as Kysely<unknown>);
    });

  test('carries every limit over with its author and its time, and drops the tables', async () => {
    await migrateOverrides([
      { application_id: 'app_1', account_id: 'acc_1', route, windows: [], changed_by: 'mbr_1', changed_at: AT },
      {
        ...{ application_id: 'app_1', provider: 'mock', windows: ['7/1m', '50/1d'], changed_by: 'key_1' },
        changed_at: '2026-02-01T10:00:00.000Z',
      },
    ]);
    const limits = new AccountLimits(db, { log: pino({ level: 'silent' }) });
    await limits.refresh();
    expect(limits.shared.list().toSorted((one, other) => one.version - other.version)).toMatchObject([
      { target: { provider: 'app_1/mock' }, by: 'key_1', at: Date.parse('2026-02-01T10:00:00Z'), version: 1 },
      { target: { account: 'acc_1', route }, windows: [], by: 'mbr_1', at: Date.parse(AT), version: 2 },
    ]);
    const owner = { applicationId: 'app_1', provider: 'mock', accountId: 'acc_1' };
    expect(limits.list(owner)).toMatchObject([
      { windows: ['7/1m', '50/1d'], source: 'application' },
      { windows: [], source: 'account' },
    ]);
    expect(limits.list({ applicationId: 'app_2', provider: 'mock' })).toMatchObject([
      { source: 'recommended' },
      { source: 'recommended' },
    ]);
    expect(await limits.shared.history()).toHaveLength(2);
    await limits.close();
    const { rows } =
      await sql`select to_regclass('limit_overrides') as one, to_regclass('limits_version') as other`.execute(db);
    expect(rows).toEqual([{ one: null, other: null }]);
  });

  test('never replaces shared limits that are there', async () => {
    const overrides = [
      { application_id: 'app_1', provider: 'mock', windows: ['9/1m'], changed_by: 'key_1', changed_at: AT },
    ];
    await expect(migrateOverrides(overrides)).rejects.toThrow('belongs to another service');
    await migrateOverrides([]);
  });
});
