import { type Kysely, sql } from 'kysely';

const STATEMENTS = [
  `alter table domains
    add column token text not null default replace(gen_random_uuid()::text, '-', ''),
    add column missing text[] not null default '{}',
    add column failures integer not null default 0,
    add column checked_at timestamptz`,
  // Every application may name a host. One of them can prove that it owns it.
  'alter table domains drop constraint domains_host_key',
  `create unique index domains_in_use on domains (host) where status <> 'pending'`,
  'create unique index domains_of_application on domains (application_id, host)',
  `create index domains_to_check on domains (checked_at) where status <> 'pending'`,
];

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db);
}
