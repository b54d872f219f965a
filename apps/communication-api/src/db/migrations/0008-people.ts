import { type Kysely, sql } from 'kysely';

/** Every installation contains this organization. It owns the applications that were made without a login. */
const FIRST = 'org_00000000000000000000000000';

const STATEMENTS = [
  `create table organizations (
    id text primary key,
    name text not null,
    created_at timestamptz not null default now()
  )`,
  `insert into organizations (id, name) values ('${FIRST}', 'My organization')`,
  // The default is for processes of the previous version, which run until they are replaced.
  `alter table applications
    add column organization_id text not null default '${FIRST}' references organizations`,
  `create index applications_of_organization on applications (organization_id, id desc)`,
  `create table members (
    id text primary key,
    organization_id text not null references organizations on delete cascade,
    role text not null check (role in ('member', 'admin', 'owner')),
    email text not null unique,
    name text not null,
    password_hash text not null,
    created_at timestamptz not null
  )`,
  `create index members_of_organization on members (organization_id, id desc)`,
  `create table member_sessions (
    id text primary key,
    member_id text not null references members on delete cascade,
    cookie_hash text not null unique,
    created_at timestamptz not null,
    last_used_at timestamptz not null
  )`,
  `create index member_sessions_of_member on member_sessions (member_id)`,
  `create index member_sessions_by_use on member_sessions (last_used_at)`,
  `create table invitations (
    id text primary key,
    organization_id text not null references organizations on delete cascade,
    token_hash text not null unique,
    kind text not null check (kind in ('setup', 'operator', 'member')),
    role text not null check (role in ('member', 'admin', 'owner')),
    label text not null,
    created_by text references members on delete cascade,
    expires_at timestamptz not null,
    used_at timestamptz,
    created_at timestamptz not null,
    check ((kind = 'member') = (created_by is not null))
  )`,
  `create index invitations_of_organization on invitations (organization_id, id desc)`,
  `create index invitations_by_end on invitations (expires_at)`,
  `create table audit_log (
    id text primary key,
    organization_id text not null references organizations on delete cascade,
    actor_id text references members on delete set null,
    actor text not null,
    action text not null,
    subject_id text,
    subject text not null,
    application_id text references applications on delete set null,
    at timestamptz not null
  )`,
  `create index audit_log_of_organization on audit_log (organization_id, id desc)`,
];

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db);
}
