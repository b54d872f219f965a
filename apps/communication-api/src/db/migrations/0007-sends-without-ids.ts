import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  // The sweeper looks for them every 30 seconds, among all emails that were sent.
  await sql`create index sends_without_ids on sends (settled_at)
    where state = 'sent' and provider_id is null and draft_ref is not null`.execute(db);
}
