import { type Kysely, sql } from 'kysely';

const STATEMENTS = [
  // A person makes links without an API key.
  `alter table auth_links alter column api_key_id drop not null`,
  // For the list of emails. Those that were not sent are few among those that were.
  `create index sends_of_application on sends (application_id, id desc)`,
  `create index sends_not_sent on sends (application_id, id desc)
    where state in ('prepared', 'dispatched', 'failed', 'unknown')`,
];

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db);
}
