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
  `create table webhook_endpoints (
    id text primary key,
    application_id text not null references applications on delete cascade,
    url text not null,
    trigger_events text[] not null,
    account_ids text[],
    description text,
    secrets bytea not null,
    enabled boolean not null,
    disabled_reason text check (disabled_reason in ('gone', 'failing')),
    failing_since timestamptz,
    created_at timestamptz not null,
    check (not enabled or disabled_reason is null)
  )`,
  `create index webhook_endpoints_of_application on webhook_endpoints (application_id, id desc)`,
  `create table webhook_conversations (
    id text primary key,
    application_id text not null references applications on delete cascade,
    endpoint_id text not null,
    event_id text not null,
    event_type text not null,
    attempt integer not null,
    outcome text not null check (outcome in ('delivered', 'failed')),
    status integer,
    response text,
    error text,
    duration_ms integer not null,
    next_attempt_at timestamptz,
    created_at timestamptz not null,
    check ((status is null) <> (error is null))
  )`,
  `create index webhook_conversations_of_application on webhook_conversations (application_id, id desc)`,
  `create index webhook_conversations_of_endpoint on webhook_conversations (endpoint_id, id desc)`,
  `create index webhook_conversations_of_event on webhook_conversations (event_id, id desc)`,
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
