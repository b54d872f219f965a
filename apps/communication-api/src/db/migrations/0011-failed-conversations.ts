import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  // The dashboard shows the failed deliveries of an endpoint, which may be few among many.
  await sql`create index webhook_conversations_failed on webhook_conversations (endpoint_id, id desc)
    where outcome = 'failed'`.execute(db);
}
