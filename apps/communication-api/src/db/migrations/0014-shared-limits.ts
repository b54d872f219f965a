import { randomUUID } from 'node:crypto';
import { parseLimit } from 'headgate';
import { createPostgresAdjustments, migrate } from 'headgate/postgres';
import type { Adjustment, AdjustmentEntry } from 'headgate/shared-limits';
import { type Kysely, sql } from 'kysely';
import { executorOf } from '../executor.ts';

interface Override {
  readonly application_id: string;
  readonly provider: string | null;
  readonly account_id: string | null;
  readonly route: string | null;
  readonly windows: readonly string[];
  readonly changed_by: string;
  readonly changed_at: Date;
}

/** Entries that a process remembers. */
const RECENT = 1_000;
/** There may be hundreds of thousands. */
const DEADLINE_MS = 600_000;

/** Adjusted limits become adjustments of shared limits, each by the person or key that made it, and at its time. */
export async function up(db: Kysely<unknown>): Promise<void> {
  const executor = executorOf(db);
  await migrate(executor);
  const { rows } = await sql<Override>`select * from limit_overrides order by changed_at`.execute(db);
  const adjustments = rows.map(adjustmentOf);
  const entries = adjustments.map(entryOf);
  const head = entries.at(-1);
  if (head !== undefined) {
    const store = createPostgresAdjustments(executor, { deadlineMs: DEADLINE_MS });
    if (!(await store.restore(undefined, { head, adjustments, recent: entries.slice(-RECENT) })))
      throw new Error('The schema "headgate" of this database belongs to another service, which has shared limits.');
  }
  await sql`drop table limit_overrides`.execute(db);
  await sql`drop table limits_version`.execute(db);
}

const adjustmentOf = ({ route, ...row }: Override, index: number): Adjustment => ({
  target: {
    ...(row.account_id === null ? { provider: `${row.application_id}/${row.provider}` } : { account: row.account_id }),
    ...(route === null ? {} : { route }),
  },
  windows: parseLimit(row.windows),
  version: index + 1,
  by: row.changed_by,
  at: row.changed_at.getTime(),
});

const entryOf = ({ target, windows, version, by, at }: Adjustment): AdjustmentEntry => ({
  ...{ version, nonce: randomUUID(), at, by, source: 'change' },
  limits: [{ target, from: undefined, to: windows }],
});
