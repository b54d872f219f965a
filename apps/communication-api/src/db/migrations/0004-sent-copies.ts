import { type Kysely, sql } from 'kysely';

const STATEMENTS = [
  `create table sent_copies (
    send_id text primary key references sends on delete cascade,
    application_id text not null references applications on delete cascade,
    account_id text not null references accounts,
    message bytea not null,
    created_at timestamptz not null
  )`,
  `create index sent_copies_of_account on sent_copies (account_id)`,
  // Sealed bytes cannot be compressed.
  `alter table sent_copies alter column message set storage external`,
];

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db);
}
