import { type Kysely, sql } from 'kysely';

const STATEMENTS = [
  // A session of before has neither. It ends within seven days.
  `alter table member_sessions add column address text, add column browser text`,
  `alter table organizations
    add column second_factor_for text not null default 'nobody'
    check (second_factor_for in ('nobody', 'production', 'everything'))`,
  `create table second_factors (
    member_id text primary key references members on delete cascade,
    id text not null,
    secret bytea not null,
    last_step integer not null,
    recovery_hashes text[] not null,
    created_at timestamptz not null
  )`,
];

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db);
}
