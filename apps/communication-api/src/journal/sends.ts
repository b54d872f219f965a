import type { Database } from '../db/database.ts';
import { json } from '../db/json.ts';
import type { Clock } from '../domain/clock.ts';
import { newId } from '../domain/ids.ts';
import { keyName } from '../domain/key-name.ts';
import type { SentIds } from '../providers/provider.ts';
import type { Envelope } from '../security/envelope.ts';
import type { Events } from '../webhooks/events.ts';
import { KEY_RETENTION_MS, OldSends } from './old-sends.ts';
import { LOOK_FOR_MS, type Send, type SendContent, SendRecords, UNSETTLED } from './send-records.ts';
import { type SendError, Settlements } from './settlements.ts';

/** A requested send. */
export interface NewSend {
  readonly applicationId: string;
  readonly accountId: string;
  /** Its name, see `nameOf`. Null: the request carries no idempotency key. */
  readonly idempotencyKey: string | null;
  readonly fingerprint: string;
  readonly messageId: string;
  readonly label: string | null;
  /** What `tracking_options` asked for. Default: neither. */
  readonly tracks?: { readonly opens: boolean; readonly links: boolean };
  readonly content: SendContent;
}

/** The attempt that works on a send: one request in one process. */
export interface Attempt {
  readonly owner: string;
  readonly instanceId: string;
}

/** The outcome that a person found out in the mailbox. */
export type FoundOutcome = 'sent' | 'not_sent';

/** The error that a retry with the key of such an email gets. */
const NOT_SENT: SendError = {
  status: 409,
  type: 'errors/operation_canceled',
  detail: 'A person checked the mailbox: the email was not sent. Use a new Idempotency-Key to send it.',
};

/**
 * The send journal: one row per send. Each change names the state that it expects, so exactly one of several attempts
 * makes it. The row decides which emails were sent, even if the store of idempotency keys lost everything.
 */
export class Sends {
  readonly records: SendRecords;
  readonly old: OldSends;
  readonly #settlements: Settlements;

  constructor(
    private readonly db: Database,
    envelope: Envelope,
    private readonly clock: Clock,
    events: Events,
  ) {
    this.records = new SendRecords(db, envelope, clock);
    this.old = new OldSends(db, clock);
    this.#settlements = new Settlements(db, clock, events);
  }

  /**
   * Inserts the row of a send, or takes over the row of an attempt with the same key that dispatched nothing yet.
   * Returns undefined if the row of the key is past this state, or belongs to another request.
   */
  async take(send: NewSend, { owner, instanceId }: Attempt): Promise<{ readonly id: string } | undefined> {
    const now = this.clock();
    const id = newId('eml', now);
    const attempt = { owner, instance_id: instanceId };
    return this.db
      .insertInto('sends')
      .values({
        id,
        application_id: send.applicationId,
        account_id: send.accountId,
        idempotency_key: send.idempotencyKey,
        fingerprint: send.fingerprint,
        message_id: send.messageId,
        state: 'prepared',
        attempt: 1,
        envelope: this.records.sealed(id, send.content),
        label: send.label,
        tracks_opens: send.tracks?.opens ?? false,
        tracks_links: send.tracks?.links ?? false,
        rejected: json([]),
        created_at: new Date(now),
        ...attempt,
      })
      .onConflict((conflict) =>
        conflict
          .columns(['application_id', 'idempotency_key'])
          .doUpdateSet(({ ref, eb }) => ({ ...attempt, attempt: eb(ref('sends.attempt'), '+', 1) }))
          .where('sends.state', '=', 'prepared')
          .where('sends.fingerprint', '=', send.fingerprint)
          .where('sends.created_at', '>', new Date(now - KEY_RETENTION_MS)),
      )
      .returning('id')
      .executeTakeFirst();
  }

  /**
   * The name of a caller's idempotency key, under which the journal has its request. A request of a scoped key may still
   * have a row from before its scope was part of the name.
   */
  async nameOf(
    { applicationId, scopeId }: { readonly applicationId: string; readonly scopeId: string | null },
    key: string,
    fingerprint: string,
  ): Promise<string> {
    const name = keyName(scopeId, key);
    if (name === key) return key;
    const row = await this.db
      .selectFrom('sends')
      .select('idempotency_key')
      .where('application_id', '=', applicationId)
      .where('idempotency_key', 'in', [name, key])
      .where(({ eb, or }) => or([eb('idempotency_key', '=', name), eb('fingerprint', '=', fingerprint)]))
      .orderBy(({ eb }) => eb('idempotency_key', '=', key))
      .limit(1)
      .executeTakeFirst();
    return row?.idempotency_key ?? name;
  }

  /** The row of an idempotency key, by its name. A key that is older than its retention is forgotten here. */
  async byKey(applicationId: string, name: string): Promise<Send | undefined> {
    const row = await this.db
      .selectFrom('sends')
      .selectAll()
      .where('application_id', '=', applicationId)
      .where('idempotency_key', '=', name)
      .executeTakeFirst();
    if (row === undefined || row.created_at.getTime() > this.clock() - KEY_RETENTION_MS) return row;
    await this.db
      .updateTable('sends')
      .set({ idempotency_key: null })
      .where('application_id', '=', applicationId)
      .where('id', '=', row.id)
      .execute();
    return undefined;
  }

  /** Sets the mark before the effect: now the email may be sent. Returns false if another attempt owns the row. */
  async dispatch(applicationId: string, id: string, owner: string, draftRef: string | null): Promise<boolean> {
    return this.#changed(
      this.#owned(applicationId, id, owner, 'prepared').set({
        state: 'dispatched',
        draft_ref: draftRef,
        dispatched_at: new Date(this.clock()),
      }),
    );
  }

  /** Takes over a dispatched row whose attempt ended or died. Returns false if another attempt was faster. */
  async adopt(applicationId: string, { id, owner }: Send, attempt: Attempt): Promise<boolean> {
    return this.#changed(
      this.#rows(applicationId, id)
        .where('state', 'in', ['dispatched', 'unknown'])
        .where('owner', owner === null ? 'is' : '=', owner)
        .set(({ eb, ref }) => ({
          owner: attempt.owner,
          instance_id: attempt.instanceId,
          attempt: eb(ref('attempt'), '+', 1),
        })),
    );
  }

  /**
   * Notes that the email was sent. Any attempt may say so, even an attempt that was taken for dead: it is the truth.
   * @param more other writes of the same transaction, if this changes the row
   */
  async sent(
    applicationId: string,
    id: string,
    ids: SentIds,
    more?: (transaction: Database) => Promise<unknown>,
  ): Promise<void> {
    await this.#settlements.settle(
      { applicationId, id, states: UNSETTLED },
      {
        state: 'sent',
        owner: null,
        provider_id: ids.providerId,
        provider_immutable_id: ids.immutableId,
        thread_ref: ids.thread,
        ...(ids.messageId === undefined ? {} : { message_id: ids.messageId }),
        rejected: json([...ids.rejected]),
        settled_at: new Date(this.clock()),
      },
      more,
    );
  }

  /** The email was not sent, and this attempt was the last. */
  async failed(applicationId: string, id: string, owner: string, error: SendError): Promise<boolean> {
    return this.#settlements.settle(
      { applicationId, id, states: UNSETTLED, owner },
      { state: 'failed', owner: null, error: json(error), settled_at: new Date(this.clock()) },
    );
  }

  /** The email was certainly not sent, and another attempt may succeed. */
  async undo(applicationId: string, id: string, owner: string): Promise<boolean> {
    return this.#changed(
      this.#owned(applicationId, id, owner, 'prepared', 'dispatched').set({
        state: 'prepared',
        owner: null,
        draft_ref: null,
        dispatched_at: null,
      }),
    );
  }

  /** This attempt ended without an outcome: the next attempt need not wait for it. */
  async leave(applicationId: string, id: string, owner: string): Promise<void> {
    await this.#rows(applicationId, id).where('owner', '=', owner).set({ owner: null }).execute();
  }

  /** It is not known whether the email was sent. */
  async unknown(applicationId: string, id: string, owner: string | null): Promise<boolean> {
    return this.#settlements.settle(
      { applicationId, id, states: ['dispatched', 'unknown'], owner },
      { state: 'unknown', owner: null },
    );
  }

  /**
   * Stores the outcome that a person found out for an email whose outcome is unknown. Returns false if the outcome is
   * known by now, or if a process is asking the provider for it: then the person must look again.
   */
  async resolve(applicationId: string, id: string, outcome: FoundOutcome, transaction: Database): Promise<boolean> {
    const error = outcome === 'sent' ? {} : { error: json(NOT_SENT) };
    return this.#settlements.settle(
      { applicationId, id, states: ['unknown'], isIdle: true },
      { state: outcome === 'sent' ? 'sent' : 'failed', owner: null, ...error, settled_at: new Date(this.clock()) },
      undefined,
      transaction,
    );
  }

  isOlder(time: Date, ageMs: number): boolean {
    return time.getTime() < this.clock() - ageMs;
  }

  /**
   * Emails of the last hour that were sent as drafts and that their provider did not show at once, of all applications.
   * Those that were looked for less often come first. Another process takes other rows.
   */
  async takeWithoutIds(limit: number): Promise<readonly Send[]> {
    return this.db
      .updateTable('sends')
      .set(({ eb, ref }) => ({ attempt: eb(ref('attempt'), '+', 1) }))
      .where('id', 'in', (query) =>
        query
          .selectFrom('sends')
          .select('id')
          .where('state', '=', 'sent')
          .where('provider_id', 'is', null)
          .where('draft_ref', 'is not', null)
          .where('settled_at', '>', new Date(this.clock() - LOOK_FOR_MS))
          .orderBy('attempt')
          .orderBy('settled_at')
          .limit(limit)
          .forUpdate()
          .skipLocked(),
      )
      .returningAll()
      .execute();
  }

  /** Adds the provider's ids to an email that was sent without them. */
  async addIds(
    applicationId: string,
    id: string,
    { providerId, immutableId, thread, messageId }: SentIds,
  ): Promise<void> {
    await this.#rows(applicationId, id)
      .where('state', '=', 'sent')
      .where('provider_id', 'is', null)
      .set({
        provider_id: providerId,
        provider_immutable_id: immutableId,
        thread_ref: thread,
        ...(messageId === undefined ? {} : { message_id: messageId }),
      })
      .execute();
  }

  /**
   * Ends rows without a key that never came to be dispatched, of all applications.
   * @param limit rows per call
   */
  async cancelAbandoned(ageMs: number, error: SendError, limit: number): Promise<void> {
    const now = this.clock();
    const abandoned = await this.db
      .selectFrom('sends')
      .select(['application_id', 'id'])
      .where('state', '=', 'prepared')
      .where('idempotency_key', 'is', null)
      .where('created_at', '<', new Date(now - ageMs))
      .limit(limit)
      .execute();
    for (const { application_id, id } of abandoned)
      await this.#settlements.settle(
        { applicationId: application_id, id, states: ['prepared'] },
        { state: 'failed', owner: null, error: json(error), settled_at: new Date(now) },
      );
  }

  #rows(applicationId: string, id: string) {
    return this.db.updateTable('sends').where('application_id', '=', applicationId).where('id', '=', id);
  }

  #owned(applicationId: string, id: string, owner: string, ...states: Send['state'][]) {
    return this.#rows(applicationId, id).where('owner', '=', owner).where('state', 'in', states);
  }

  async #changed(update: {
    executeTakeFirst(): Promise<{ readonly numUpdatedRows: bigint } | undefined>;
  }): Promise<boolean> {
    return ((await update.executeTakeFirst())?.numUpdatedRows ?? 0n) === 1n;
  }
}
