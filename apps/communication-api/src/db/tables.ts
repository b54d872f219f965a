import type { ColumnType, Generated, RawBuilder } from 'kysely';
import type { JournalState } from '../domain/email-state.ts';
import type { InitialSync } from '../domain/initial-sync.ts';
import type { ProcessRole } from '../domain/process-role.ts';

/** A JSON column: written with `json()`, read as its value. */
type Json<Value> = ColumnType<Value, RawBuilder<Value>, RawBuilder<Value>>;
type OptionalJson<Value> = ColumnType<Value | null, RawBuilder<Value | null> | undefined, RawBuilder<Value | null>>;
/** A column that is null unless it is written. */
type Optional<Value> = ColumnType<Value | null, Value | null | undefined, Value | null>;

export interface ApplicationRow {
  id: string;
  name: string;
  environment: 'development' | 'production';
  /** Where links may return to; empty: anywhere. */
  redirect_uris: ColumnType<string[], string[] | undefined, string[]>;
  /** Default: the organization of the installation. */
  organization_id: Generated<string>;
  created_at: Date;
}

export interface ScopeRow {
  id: string;
  application_id: string;
  name: string;
  reference: Optional<string>;
  status: 'active' | 'disabled';
  created_at: Date;
  removed_at: Optional<Date>;
}

export interface ApiKeyRow {
  id: string;
  application_id: string;
  role: 'service' | 'account' | 'scoped';
  scope_id: Optional<string>;
  name: string;
  prefix: string;
  /** SHA-256 of the token, in hexadecimal. */
  token_hash: string;
  issued_at: Date;
  expires_at: Date;
  revoked_at: Optional<Date>;
  last_used_at: Optional<Date>;
}

export interface AccountRow {
  id: string;
  application_id: string;
  scope_id: Optional<string>;
  provider: string;
  /** The provider's own id of the account, which never changes. */
  provider_user_id: string;
  name: string;
  status: 'running' | 'disconnected' | 'error';
  /** The type of the error that the status comes from. */
  status_reason: Optional<string>;
  /** When its provider last refused its credentials, if it did not accept them since. */
  auth_failed_at: Optional<Date>;
  paused_at: Optional<Date>;
  /** Credentials and proxy, sealed; null after the account was removed. */
  secret: Optional<Uint8Array>;
  /** The proxy without its password. */
  proxy: OptionalJson<Record<string, unknown>>;
  sync: Json<InitialSync>;
  metadata: Json<Record<string, unknown>>;
  created_at: Date;
  /** When its user linked it, or last reconnected it. */
  connected_at: Date;
  removed_at: Optional<Date>;
  /** The caller that refreshes the credentials, and until when it may. */
  renewal_owner: Optional<string>;
  renewal_until: Optional<Date>;
}

export interface AuthLinkRow {
  id: string;
  application_id: string;
  token_hash: string;
  /** Null: a person made it, in the dashboard. */
  api_key_id: Optional<string>;
  scope_id: Optional<string>;
  /** The account to reconnect; null: a new one. */
  account_id: Optional<string>;
  /** The providers that the user may choose from. */
  providers: string[];
  /** `config` of the request, sealed: a proxy may contain a password. */
  config: Uint8Array;
  redirect_uri: string;
  client_state: Optional<string>;
  domain: Optional<string>;
  status: 'open' | 'used' | 'cancelled';
  used_account_id: Optional<string>;
  expires_on: Date;
  /** When it was used or cancelled. */
  closed_at: Optional<Date>;
  created_at: Date;
}

export interface WizardSessionRow {
  id: string;
  link_id: string;
  /** SHA-256 of the cookie, in hexadecimal. */
  cookie_hash: string;
  /** The cookie before the last change, for a request that was already on its way. */
  previous_cookie_hash: Optional<string>;
  cookie_changed_at: Optional<Date>;
  step: 'choose' | 'flow' | 'wrong-account' | 'linked' | 'cancelled';
  /** Submitted passwords and codes that were wrong or are not judged yet. */
  attempts: Generated<number>;
  /** Until then no password and no code is taken. */
  paused_until: Optional<Date>;
  /** The entries of the user, sealed. */
  data: Optional<Uint8Array>;
  expires_at: Date;
  created_at: Date;
}

/** Something that happened, for webhooks. */
export interface EventRow {
  id: string;
  application_id: string;
  account_id: Optional<string>;
  type: string;
  data: Json<Readonly<Record<string, unknown>>>;
  created_at: Date;
}

export interface WebhookEndpointRow {
  id: string;
  application_id: string;
  url: string;
  /** Types of events, and patterns such as `account.*`. */
  trigger_events: string[];
  /** Only events of these accounts; null: of all, and those without an account. */
  account_ids: Optional<string[]>;
  description: Optional<string>;
  /** The secrets that sign, sealed. */
  secrets: Uint8Array;
  enabled: boolean;
  /** Why the service disabled it; null: it is enabled, or a client disabled it. */
  disabled_reason: Optional<'gone' | 'failing'>;
  /** The first failure since the last success. */
  failing_since: Optional<Date>;
  created_at: Date;
}

/** One request to an endpoint, and its answer. It outlives the endpoint. */
export interface WebhookConversationRow {
  id: string;
  application_id: string;
  endpoint_id: string;
  event_id: string;
  event_type: string;
  /** 1 for the first. */
  attempt: number;
  outcome: 'delivered' | 'failed';
  /** The status of the answer; null: no answer came, and `error` says why. */
  status: number | null;
  /** The beginning of the body of the answer. */
  response: string | null;
  error: string | null;
  duration_ms: number;
  /** Null: it was delivered, or this was the last attempt. */
  next_attempt_at: Date | null;
  created_at: Date;
}

/** Something that a process does later. */
export interface JobRow {
  kind: string;
  lane: string;
  subject: string;
  application_id: string;
  /** Attempts that were begun. */
  attempt: Generated<number>;
  /** Whether an attempt is running, or was when its process died. */
  is_taken: Generated<boolean>;
  /** When the next attempt may begin. If the job is taken: when its attempt has certainly ended. */
  next_at: Date;
  created_at: Date;
}

/** One row per send, which the steps of its claim write. */
export interface SendRow {
  id: string;
  application_id: string;
  account_id: string;
  idempotency_key: Optional<string>;
  fingerprint: string;
  message_id: string;
  state: JournalState;
  /** How often the email was looked for. */
  attempt: number;
  draft_ref: Optional<string>;
  provider_id: Optional<string>;
  provider_immutable_id: Optional<string>;
  thread_ref: Optional<string>;
  /** Addresses and subject, sealed. */
  envelope: Optional<Uint8Array>;
  label: Optional<string>;
  /** What `tracking_options` asked for. */
  tracks_opens: Generated<boolean>;
  tracks_links: Generated<boolean>;
  /** Why the send failed. */
  error: OptionalJson<{ status: number; type: string; detail: string }>;
  /** Recipients that the provider refused. */
  rejected: Json<string[]>;
  created_at: Date;
  dispatched_at: Optional<Date>;
  settled_at: Optional<Date>;
}

/** The copy of a sent email until it is in the folder for sent emails. */
export interface SentCopyRow {
  send_id: string;
  application_id: string;
  account_id: string;
  /** The MIME message, sealed. */
  message: Uint8Array;
  created_at: Date;
}

/** One request for the pixel of an email, or for one of its links. Neither an address nor a user agent is stored. */
export interface TrackingHitRow {
  id: Generated<string>;
  application_id: string;
  send_id: string;
  kind: 'open' | 'link';
  /** The number of the link in the email, from 1; null for an open. */
  link_no: number | null;
  class: 'person' | 'mail_proxy' | 'scanner';
  at: Date;
}

export interface InstanceRow {
  id: string;
  host: string;
  pid: number;
  role: Generated<ProcessRole>;
  started_at: Date;
  seen_at: Date;
}

export interface DomainRow {
  id: string;
  application_id: string;
  host: string;
  purpose: 'auth' | 'tracking';
  status: 'pending' | 'verified' | 'failing';
  /** Part of the TXT record that proves who owns the host. It is not secret. */
  token: Generated<string>;
  /** Types of the records that the last check did not find. */
  missing: Generated<string[]>;
  /** Daily checks that failed since the last success. */
  failures: Generated<number>;
  checked_at: Optional<Date>;
  created_at: Date;
}

/** A secret of the service itself, sealed. */
export interface ServiceSecretRow {
  id: string;
  value: Uint8Array;
}

export interface MockMessageRow {
  id: Generated<number>;
  account_id: string;
  message_id: string;
  thread: string;
  recipients: string[];
  /** The first 256 KiB of the message. */
  raw: Uint8Array;
  size: number;
  at: Date;
}

export interface MockDraftRow extends Omit<MockMessageRow, 'id'> {
  id: string;
}

export interface OrganizationRow {
  id: string;
  name: string;
  created_at: Generated<Date>;
  /** The work that needs a second factor. */
  second_factor_for: Generated<'nobody' | 'production' | 'everything'>;
}

/** A person with a login to the dashboard. */
export interface MemberRow {
  id: string;
  organization_id: string;
  role: 'member' | 'admin' | 'owner';
  /** In lower case. */
  email: string;
  name: string;
  /** Made by scrypt. */
  password_hash: string;
  created_at: Date;
}

export interface MemberSessionRow {
  id: string;
  member_id: string;
  /** SHA-256 of the cookie, in hexadecimal. */
  cookie_hash: string;
  created_at: Date;
  /** Accurate to a minute. */
  last_used_at: Date;
  /** From which the member signed in; null: it is not known. */
  address: Optional<string>;
  /** Its name and its system, such as `Firefox on Linux`; null: it is not known. */
  browser: Optional<string>;
}

/** The codes that a member enters beside the password. */
export interface SecondFactorRow {
  member_id: string;
  /** Differs for each secret. */
  id: string;
  /** Sealed. */
  secret: Uint8Array;
  /** Time step of the newest code that was accepted: no code of this step or an earlier one is accepted again. */
  last_step: number;
  /** SHA-256 of each recovery code that was not used, in hexadecimal. */
  recovery_hashes: string[];
  created_at: Date;
}

/** A link by which a person becomes a member. */
export interface InvitationRow {
  id: string;
  organization_id: string;
  /** SHA-256 of the token, in hexadecimal. */
  token_hash: string;
  /** `setup`: for the first owner. `operator`: made at the command line. */
  kind: 'setup' | 'operator' | 'member';
  role: 'member' | 'admin' | 'owner';
  /** Whom it is for, for people. */
  label: string;
  /** The member who made it; null: it was made without a login. */
  created_by: Optional<string>;
  expires_at: Date;
  used_at: Optional<Date>;
  created_at: Date;
}

/** An action of a person. The row keeps the names of that time, because a person may be removed later. */
export interface AuditRow {
  id: string;
  organization_id: string;
  /** Null: the operator, at the command line, or a member who was removed. */
  actor_id: Optional<string>;
  actor: string;
  action: string;
  /** The id of the changed object. */
  subject_id: Optional<string>;
  subject: string;
  application_id: Optional<string>;
  at: Date;
}

export interface Tables {
  applications: ApplicationRow;
  scopes: ScopeRow;
  api_keys: ApiKeyRow;
  accounts: AccountRow;
  auth_links: AuthLinkRow;
  wizard_sessions: WizardSessionRow;
  events: EventRow;
  webhook_endpoints: WebhookEndpointRow;
  webhook_conversations: WebhookConversationRow;
  jobs: JobRow;
  sends: SendRow;
  sent_copies: SentCopyRow;
  tracking_hits: TrackingHitRow;
  instances: InstanceRow;
  domains: DomainRow;
  service_secrets: ServiceSecretRow;
  mock_messages: MockMessageRow;
  mock_drafts: MockDraftRow;
  organizations: OrganizationRow;
  members: MemberRow;
  member_sessions: MemberSessionRow;
  second_factors: SecondFactorRow;
  invitations: InvitationRow;
  audit_log: AuditRow;
}
