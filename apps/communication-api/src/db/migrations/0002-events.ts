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
  `create table jobs (
    kind text not null,
    lane text not null,
    subject text not null,
    application_id text not null references applications on delete cascade,
    attempt integer not null default 0,
    is_taken boolean not null default false,
    next_at timestamptz not null,
    created_at timestamptz not null,
    primary key (kind, lane, subject)
  )`,
  `create index jobs_by_lane on jobs (kind, lane, next_at)`,
  `create index jobs_of_application on jobs (application_id)`,
];

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db);
}
