import { type Kysely, sql } from 'kysely';

const STATEMENTS = [
  `create table applications (
    id text primary key,
    name text not null,
    environment text not null check (environment in ('development', 'production')),
    redirect_uris text[] not null default '{}',
    created_at timestamptz not null
  )`,
  `create table scopes (
    id text primary key,
    application_id text not null references applications on delete cascade,
    name text not null,
    reference text,
    status text not null check (status in ('active', 'disabled')),
    created_at timestamptz not null,
    removed_at timestamptz
  )`,
  `create index scopes_of_application on scopes (application_id, id desc)`,
  `create table api_keys (
    id text primary key,
    application_id text not null references applications on delete cascade,
    role text not null check (role in ('service', 'account', 'scoped')),
    scope_id text references scopes,
    name text not null,
    prefix text not null,
    token_hash text not null unique,
    issued_at timestamptz not null,
    expires_at timestamptz not null,
    revoked_at timestamptz,
    last_used_at timestamptz,
    check ((role = 'scoped') = (scope_id is not null))
  )`,
  `create index api_keys_of_application on api_keys (application_id, role, id desc)`,
  `create table accounts (
    id text primary key,
    application_id text not null references applications on delete cascade,
    scope_id text references scopes,
    provider text not null,
    provider_user_id text not null,
    name text not null,
    status text not null check (status in ('running', 'disconnected', 'error')),
    status_reason text,
    paused_at timestamptz,
    secret bytea,
    proxy jsonb,
    sync jsonb not null,
    metadata jsonb not null,
    created_at timestamptz not null,
    removed_at timestamptz
  )`,
  `create unique index account_of_provider on accounts (application_id, provider, provider_user_id) where removed_at is null`,
  `create index accounts_of_scope on accounts (application_id, scope_id, id desc)`,
  `create table auth_links (
    id text primary key,
    application_id text not null references applications on delete cascade,
    token_hash text not null unique,
    api_key_id text not null references api_keys,
    scope_id text references scopes,
    account_id text references accounts,
    providers text[] not null,
    config bytea not null,
    redirect_uri text not null,
    client_state text,
    domain text,
    status text not null check (status in ('open', 'used', 'cancelled')),
    used_account_id text references accounts,
    expires_on timestamptz not null,
    created_at timestamptz not null
  )`,
  `create index links_by_end on auth_links (expires_on)`,
  `create table wizard_sessions (
    id text primary key,
    link_id text not null references auth_links on delete cascade,
    cookie_hash text not null unique,
    previous_cookie_hash text unique,
    cookie_changed_at timestamptz,
    step text not null check (step in ('choose', 'flow', 'wrong-account', 'linked', 'cancelled')),
    attempts integer not null default 0,
    paused_until timestamptz,
    data bytea,
    expires_at timestamptz not null,
    created_at timestamptz not null
  )`,
  `create index wizard_sessions_of_link on wizard_sessions (link_id)`,
  `create table instances (
    id text primary key,
    host text not null,
    pid integer not null,
    started_at timestamptz not null,
    seen_at timestamptz not null
  )`,
  `create table sends (
    id text primary key,
    application_id text not null references applications on delete cascade,
    account_id text not null references accounts,
    idempotency_key text,
    fingerprint text not null,
    message_id text not null,
    state text not null check (state in ('prepared', 'dispatched', 'sent', 'failed', 'unknown')),
    owner text,
    instance_id text,
    attempt integer not null,
    draft_ref text,
    provider_id text,
    provider_immutable_id text,
    thread_ref text,
    envelope bytea,
    label text,
    tracks_opens boolean not null default false,
    tracks_links boolean not null default false,
    error jsonb,
    rejected jsonb not null,
    created_at timestamptz not null,
    dispatched_at timestamptz,
    settled_at timestamptz,
    unique (application_id, idempotency_key)
  )`,
  `create index sends_of_account on sends (account_id, id desc)`,
  `create index sends_by_message_id on sends (account_id, message_id)`,
  `create index sends_by_provider_id on sends (account_id, provider_id)`,
  `create index sends_in_flight on sends (state, dispatched_at) where state in ('prepared', 'dispatched', 'unknown')`,
  `create table tracking_hits (
    id bigint generated always as identity primary key,
    application_id text not null references applications on delete cascade,
    send_id text not null references sends on delete cascade,
    kind text not null check (kind in ('open', 'link')),
    link_no integer,
    class text not null check (class in ('person', 'mail_proxy', 'scanner')),
    at timestamptz not null,
    check ((kind = 'link') = (link_no is not null))
  )`,
  `create index tracking_hits_of_send on tracking_hits (send_id, at)`,
  `create table limit_overrides (
    application_id text not null references applications on delete cascade,
    provider text,
    account_id text references accounts on delete cascade,
    route text,
    windows jsonb not null,
    changed_by text not null,
    changed_at timestamptz not null,
    unique nulls not distinct (application_id, provider, account_id, route),
    check ((provider is null) <> (account_id is null))
  )`,
  `create table limits_version (
    application_id text primary key references applications on delete cascade,
    version integer not null,
    changed_at timestamptz not null
  )`,
  `create table domains (
    id text primary key,
    application_id text not null references applications on delete cascade,
    host text not null unique,
    purpose text not null check (purpose in ('auth', 'tracking')),
    status text not null check (status in ('pending', 'verified', 'failing')),
    created_at timestamptz not null
  )`,
  `create table mock_messages (
    id integer generated always as identity primary key,
    account_id text not null references accounts on delete cascade,
    message_id text not null,
    thread text not null,
    recipients text[] not null,
    raw bytea not null,
    size integer not null,
    at timestamptz not null
  )`,
  `create index mock_messages_by_message_id on mock_messages (account_id, message_id)`,
  `create table mock_drafts (
    id text primary key,
    account_id text not null references accounts on delete cascade,
    message_id text not null,
    thread text not null,
    recipients text[] not null,
    raw bytea not null,
    size integer not null,
    at timestamptz not null
  )`,
];

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db);
}
