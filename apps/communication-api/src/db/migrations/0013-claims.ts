import { randomUUID } from 'node:crypto';
import { createProblem, problemReply, storedResponse } from 'headgate/http';
import { createPostgresClaimStore, migrate } from 'headgate/postgres';
import { type Kysely, sql } from 'kysely';
import { clientOf } from '../database.ts';
import type { Tables } from '../tables.ts';

const DAY_MS = 86_400_000;
const AT_ONCE = 500;
const DEADLINE_MS = 60_000;

/** They keep their plans: the embedded database would spend most of a send on making them anew. */
const KEEPS_PLANS = 'language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off';

const FUNCTIONS = [
  // Inserts the row of a send. `p_note` is a `SendNote`.
  `create function send_begun_1(p_scope text, p_note jsonb) returns void ${KEEPS_PLANS} as $$
  begin
    insert into sends (id, application_id, account_id, idempotency_key, fingerprint, message_id, state, attempt,
      draft_ref, envelope, label, tracks_opens, tracks_links, rejected, created_at, dispatched_at)
    values (p_note ->> 'id', p_scope, p_note ->> 'account_id', p_note ->> 'idempotency_key',
      p_note ->> 'fingerprint', p_note ->> 'message_id', 'dispatched', 0, p_note ->> 'draft_ref',
      decode(p_note ->> 'envelope', 'base64'), p_note ->> 'label', (p_note ->> 'tracks_opens')::boolean,
      (p_note ->> 'tracks_links')::boolean, '[]', (p_note ->> 'created_at')::timestamptz,
      (p_note ->> 'created_at')::timestamptz)
    on conflict (application_id, idempotency_key) do nothing;
    if found then
      return;
    end if;
    -- The claim of an earlier email with this key was forgotten after a day, so the key belongs to this email.
    update sends set idempotency_key = null
      where application_id = p_scope and idempotency_key = p_note ->> 'idempotency_key'
        and settled_at < (p_note ->> 'created_at')::timestamptz - interval '23 hours';
    if not found then
      raise exception 'a process of an older version has an email with this key' using errcode = 'unique_violation';
    end if;
    perform send_begun_1(p_scope, p_note);
  end $$`,
  // Writes the outcome of a send, with its events, their jobs, and the copy for the folder for sent emails. `p_note` is
  // an `OutcomeNote`. A `SendNote` takes the row away: nothing was sent, and a retry may send.
  `create function send_ended_1(p_scope text, p_note jsonb) returns void ${KEEPS_PLANS} as $$
  declare
    v_id constant text := p_note ->> 'id';
    v_at constant timestamptz := (p_note ->> 'at')::timestamptz;
    v_before text;
    v_account text;
    v_event jsonb;
  begin
    if not p_note ? 'state' then
      delete from sends where id = v_id and application_id = p_scope;
      return;
    end if;
    if p_note ? 'send' then
      perform send_begun_1(p_scope, p_note -> 'send');
    end if;
    select state, account_id into v_before, v_account from sends
      where id = v_id and application_id = p_scope for update;
    update sends set
      state = p_note ->> 'state',
      provider_id = coalesce(p_note ->> 'provider_id', provider_id),
      provider_immutable_id = coalesce(p_note ->> 'provider_immutable_id', provider_immutable_id),
      thread_ref = coalesce(p_note ->> 'thread_ref', thread_ref),
      message_id = coalesce(p_note ->> 'message_id', message_id),
      rejected = coalesce(p_note -> 'rejected', rejected),
      error = p_note -> 'error',
      settled_at = v_at
      where id = v_id and application_id = p_scope;
    if not found then
      return;
    end if;
    for v_event in select value from jsonb_array_elements(p_note -> 'events') loop
      if v_event ->> 'type' = 'email.outcome_resolved' and v_before <> 'unknown' then
        continue;
      end if;
      insert into events (id, application_id, account_id, type, data, created_at)
        values (v_event ->> 'id', p_scope, v_account, v_event ->> 'type', v_event -> 'data', v_at);
      insert into jobs (kind, lane, subject, application_id, next_at, created_at)
        select 'webhook', endpoint.id, v_event ->> 'id', p_scope, v_at, v_at from webhook_endpoints as endpoint
        where endpoint.application_id = p_scope and endpoint.enabled
          and endpoint.trigger_events && array(select jsonb_array_elements_text(v_event -> 'triggers'))
          and (endpoint.account_ids is null or v_account = any (endpoint.account_ids));
    end loop;
    if p_note ? 'copy' then
      insert into sent_copies (send_id, application_id, account_id, message, created_at)
        values (v_id, p_scope, v_account, decode(p_note ->> 'copy', 'base64'), v_at);
      insert into jobs (kind, lane, subject, application_id, next_at, created_at)
        values ('sent-copy', v_account, v_id, p_scope, v_at, v_at);
    end if;
    if p_note ? 'audit' then
      insert into audit_log select * from jsonb_populate_record(null::audit_log, p_note -> 'audit');
    end if;
  end $$`,
];

/** An email that an older version of the service sent, or began to send. */
interface OldSend {
  readonly id: string;
  readonly application_id: string;
  readonly idempotency_key: string | null;
  readonly fingerprint: string;
  readonly state: 'dispatched' | 'unknown' | 'sent' | 'failed';
  readonly provider_id: string | null;
  readonly provider_immutable_id: string | null;
  readonly error: { readonly status: number; readonly type: string; readonly detail: string } | null;
  /** What is left of the day for which its key is known. */
  readonly retention_ms: number;
}

/** Idempotency keys become claims: those of the last day replay, and an email without an outcome is an orphan. */
export async function up(db: Kysely<unknown>): Promise<void> {
  const client = clientOf(db as Kysely<Tables>);
  await migrate(client);
  for (const text of FUNCTIONS) await sql.raw(text).execute(db);
  const store = createPostgresClaimStore(client, { deadlineMs: DEADLINE_MS, logger: false });
  // It did nothing yet. Without a key, no attempt will ask for it.
  await sql`delete from sends where state = 'prepared' and idempotency_key is not null`.execute(db);
  await sql`update sends set state = 'failed', settled_at = now(), error = jsonb_build_object('status', 409,
    'type', 'errors/operation_canceled', 'detail', 'The service ended before the email was sent.')
    where state = 'prepared'`.execute(db);
  for (let after = ''; ; ) {
    // By the clock of the database, which is the clock of the claims.
    const { rows } = await sql<OldSend>`select *,
      ceil(extract(epoch from created_at + interval '24 hours' - now()) * 1000)::float8 as retention_ms
      from sends where id > ${after} and (state in ('dispatched', 'unknown')
        or (idempotency_key is not null and created_at > now() - interval '24 hours')) order by id limit ${AT_ONCE}`.execute(
      db,
    );
    await Promise.all(rows.map((send) => carryOver(send)));
    const last = rows.at(-1);
    if (last === undefined) return;
    after = last.id;
  }

  async function carryOver(send: OldSend): Promise<void> {
    const { id, application_id: scope, idempotency_key: name, fingerprint, state, retention_ms } = send;
    const command = { token: randomUUID(), fingerprint };
    const key = { scope, key: name ?? `\n${id}` };
    if (state === 'sent' || state === 'failed') {
      await store.complete(key, { ...command, retentionMs: retention_ms, result: resultOf(send) });
    } else {
      const lease = { ...command, retentionMs: DAY_MS, leaseMs: 1 };
      const reply = await store.begin(key, { ...lease, onOrphan: 'reject', dispatch: false });
      if (reply.kind === 'claimed') await store.dispatch(key, { ...lease, generation: reply.generation });
    }
  }
}

function resultOf({ id, provider_id, provider_immutable_id, error }: OldSend) {
  if (error === null) {
    const sent = { object: 'EmailSent', tracking_id: id, provider_id, provider_immutable_id };
    const headers = { 'content-type': 'application/json; charset=utf-8' };
    return storedResponse({ status: 201, headers, body: JSON.stringify(sent) });
  }
  return storedResponse(
    problemReply(createProblem<Record<number, string>>(error.status, error.type, error.detail, randomUUID())),
  );
}
