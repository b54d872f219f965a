import { type Kysely, sql } from 'kysely';

const STATEMENTS = [
  `alter table accounts
    add column connected_at timestamptz not null default now(),
    add column auth_failed_at timestamptz,
    add column renewal_owner text,
    add column renewal_until timestamptz`,
  `update accounts set connected_at = created_at`,
  `create index accounts_in_sync on accounts (id) where sync ->> 'status' = 'running' and removed_at is null`,
  `create table service_secrets (
    id text primary key,
    value bytea not null
  )`,
];

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db);
}
