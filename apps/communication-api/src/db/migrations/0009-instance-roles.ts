import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  // A process of the version before does everything.
  await sql`alter table instances add column role text not null default 'all'`.execute(db);
}
