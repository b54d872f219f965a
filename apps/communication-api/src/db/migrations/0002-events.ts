import { type Kysely, sql } from 'kysely';

const STATEMENTS = [
  `create table events (
    id text primary key,
    application_id text not null references applications on delete cascade,
    account_id text references accounts,
    type text not null,
    data jsonb not null,
    created_at timestamptz not null
  )`,
  `create index events_of_application on events (application_id, id desc)`,
];

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db);
}
