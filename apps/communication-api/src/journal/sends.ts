import { type ExpressionBuilder, type Selectable, sql, type Updateable } from 'kysely';
import { type Database, inTransaction } from '../db/database.ts';
import { json } from '../db/json.ts';
import { onPage } from '../db/page.ts';
import type { SendRow, Tables } from '../db/tables.ts';
import type { Clock } from '../domain/clock.ts';
import { type EmailState, journalStatesOf } from '../domain/email-state.ts';
import { isId, newId } from '../domain/ids.ts';
import type { Page } from '../domain/page.ts';
import type { SentIds } from '../providers/provider.ts';
import type { Envelope } from '../security/envelope.ts';
import type { Events, EventType } from '../webhooks/events.ts';
import { DEAD_AFTER_MS } from './instances.ts';

export type Send = Selectable<SendRow>;

/** A send that is asked for. */
export interface NewSend {
  readonly applicationId: string;
  readonly accountId: string;
  /** Null: the request has no idempotency key. */
  readonly idempotencyKey: string | null;
  readonly fingerprint: string;
  readonly messageId: string;
  readonly label: string | null;
  /** What `tracking_options` asked for. Default: neither. */
  readonly tracks?: { readonly opens: boolean; readonly links: boolean };
  readonly content: SendContent;
}

/** What is remembered of an email for the emails that answer it. Sealed. */
export interface SendContent {
  readonly to: readonly string[];
  readonly subject: string | null;
  readonly references: readonly string[];
}

/** The attempt that works on a send: one request in one process. */
export interface Attempt {
  readonly owner: string;
  readonly instanceId: string;
}

/** A provider's verdict, as it is stored. */
export interface SendError {
  readonly status: number;
  readonly type: string;
  readonly detail: string;
}

/** The row that a settlement changes. */
interface Expected {
  readonly applicationId: string;
  readonly id: string;
  readonly states: readonly Send['state'][];
  /** The attempt that must have the row; null: no attempt may have it. Default: every attempt counts. */
  readonly owner?: string | null;
  /** Whether no process that is alive may be working on the row. Default: one may. */
  readonly isIdle?: boolean;
}

/** Which emails are listed. */
export interface SendFilter {
  readonly state?: EmailState | undefined;
  /** Only emails of one of these accounts. */
  readonly accountIds?: readonly string[] | undefined;
}

/** What a person has found in the mailbox. */
export type FoundOutcome = 'sent' | 'not_sent';

/** An idempotency key is known for 24 hours. */
const KEY_RETENTION_MS = 86_400_000;
/** How long an email whose outcome is unknown is looked for. */
export const LOOK_FOR_MS = 3_600_000;
/** How long the addresses and the subject of an email are remembered, for the emails that answer it. */
const ENVELOPE_RETENTION_MS = 7 * 86_400_000;
const SEND_RETENTION_MS = 30 * 86_400_000;
/** The states of a row that no attempt works on any more. An outcome that is `unknown` is looked for during an hour. */
const SETTLED = ['sent', 'failed', 'unknown'] as const;
const UNSETTLED = ['prepared', 'dispatched', 'unknown'] as const;

/** What a retry with the key of such an email gets. */
const NOT_SENT: SendError = {
  status: 409,
  type: 'errors/operation_canceled',
  detail: 'A person has looked into the mailbox: the email was not sent. Use a new Idempotency-Key to send it.',
};

const place = (id: string): string => `sends/${id}/envelope`;

/**
 * The send journal: one row per send. Each change names the state that it expects, so of several attempts exactly one
 * makes it. The row decides what was sent, also if the store of idempotency keys has lost everything.
 */
export class Sends {
  constructor(
    private readonly db: Database,
    private readonly envelope: Envelope,
    private readonly clock: Clock,
    private readonly events: Events,
  ) {}

  /**
   * Inserts the row of a send, or takes over the row that an attempt with the same key left before it dispatched
   * anything. Undefined if the key has a row that is further, or that belongs to another request.
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
        envelope: this.envelope.sealJson(place(id), send.content),
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

  /** The row of an idempotency key. A key that is older than its retention is forgotten here. */
  async byKey(applicationId: string, key: string): Promise<Send | undefined> {
    const row = await this.db
      .selectFrom('sends')
      .selectAll()
      .where('application_id', '=', applicationId)
      .where('idempotency_key', '=', key)
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

  async byId(applicationId: string, id: string): Promise<Send | undefined> {
    if (!isId(id, 'eml')) return undefined;
    return this.db
      .selectFrom('sends')
      .selectAll()
      .where('application_id', '=', applicationId)
      .where('id', '=', id)
      .executeTakeFirst();
  }

  /** One email that a caller may see: of its application, and of its scope if it has one. */
  async visible(
    applicationId: string,
    scopeId: string | null,
    by: { readonly id: string } | { readonly idempotencyKey: string },
  ): Promise<Send | undefined> {
    if ('id' in by && !isId(by.id, 'eml')) return undefined;
    return this.db
      .selectFrom('sends')
      .selectAll('sends')
      .where('sends.application_id', '=', applicationId)
      .where((eb) => ('id' in by ? eb('sends.id', '=', by.id) : eb('sends.idempotency_key', '=', by.idempotencyKey)))
      .$if(scopeId !== null, (query) =>
        query.innerJoin('accounts', 'accounts.id', 'sends.account_id').where('accounts.scope_id', '=', scopeId),
      )
      .executeTakeFirst();
  }

  /** One page, and the first entry of the next page if there is one. */
  async list(applicationId: string, { state, accountIds }: SendFilter, page: Page): Promise<readonly Send[]> {
    return this.db
      .selectFrom('sends')
      .selectAll()
      .where('application_id', '=', applicationId)
      .$if(state !== undefined, (query) => query.where('state', 'in', journalStatesOf(state ?? 'sent')))
      .$if(accountIds !== undefined, (query) =>
        query.where('account_id', '=', sql<string>`any(${[...(accountIds ?? [])]})`),
      )
      .$call(onPage(page))
      .execute();
  }

  /** How many emails of an application have an unknown outcome. It counts to `limit` at most. */
  async countUnknown(applicationId: string, limit: number): Promise<number> {
    const unknown = this.db
      .selectFrom('sends')
      .select('id')
      .where('application_id', '=', applicationId)
      .where('state', '=', 'unknown')
      .limit(limit)
      .as('unknown');
    const { count } = await this.db
      .selectFrom(unknown)
      .select(({ fn }) => fn.countAll<string>().as('count'))
      .executeTakeFirstOrThrow();
    return Number(count);
  }

  /** The sent email that the provider calls `providerId`. */
  async byProviderId(applicationId: string, accountId: string, providerId: string): Promise<Send | undefined> {
    return this.db
      .selectFrom('sends')
      .selectAll()
      .where('application_id', '=', applicationId)
      .where('account_id', '=', accountId)
      .where('provider_id', '=', providerId)
      .executeTakeFirst();
  }

  /** What is remembered of an email; undefined after it was erased. */
  contentOf({ id, envelope }: Send): SendContent | undefined {
    return envelope === null ? undefined : this.envelope.openJson<SendContent>(place(id), envelope);
  }

  /** The mark before the effect: from here on, the email may have been sent. False if another attempt has the row. */
  async dispatch(applicationId: string, id: string, owner: string, draftRef: string | null): Promise<boolean> {
    return this.#changed(
      this.#owned(applicationId, id, owner, 'prepared').set({
        state: 'dispatched',
        draft_ref: draftRef,
        dispatched_at: new Date(this.clock()),
      }),
    );
  }

  /** Takes over a dispatched row whose attempt has ended or died. False if another attempt was faster. */
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
   * The email was sent. Any attempt may say so, also one that was taken for dead: it is the truth.
   * @param more what else is written in the same transaction, if this changes the row
   */
  async sent(
    applicationId: string,
    id: string,
    ids: SentIds,
    more?: (transaction: Database) => Promise<unknown>,
  ): Promise<void> {
    await this.#settle(
      { applicationId, id, states: ['dispatched', 'unknown'] },
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
    return this.#settle(
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

  /** This attempt has ended without an outcome: the next one need not wait for it. */
  async leave(applicationId: string, id: string, owner: string): Promise<void> {
    await this.#rows(applicationId, id).where('owner', '=', owner).set({ owner: null }).execute();
  }

  /** It is not known whether the email was sent. */
  async unknown(applicationId: string, id: string, owner: string | null): Promise<boolean> {
    return this.#settle(
      { applicationId, id, states: ['dispatched', 'unknown'], owner },
      { state: 'unknown', owner: null },
    );
  }

  /**
   * A person says what became of an email whose outcome is unknown. False if its outcome is known by now, or if a process
   * is asking the provider for it: then the person has to look again.
   */
  async resolve(applicationId: string, id: string, outcome: FoundOutcome, transaction: Database): Promise<boolean> {
    const error = outcome === 'sent' ? {} : { error: json(NOT_SENT) };
    return this.#settle(
      { applicationId, id, states: ['unknown'], isIdle: true },
      { state: outcome === 'sent' ? 'sent' : 'failed', owner: null, ...error, settled_at: new Date(this.clock()) },
      undefined,
      transaction,
    );
  }

  /**
   * Ends an attempt, and tells the application what has changed.
   * @param expected which row; it stays as it is in another state, or with another owner
   * @param more what else is written if the row was changed
   * @returns whether the row was changed
   */
  async #settle(
    { applicationId, id, states, owner, isIdle = false }: Expected,
    changes: Updateable<SendRow>,
    more?: (transaction: Database) => Promise<unknown>,
    db: Database = this.db,
  ): Promise<boolean> {
    return inTransaction(db, async (transaction) => {
      const row = await transaction
        .updateTable('sends')
        // Locked first, so that the state is the one that this statement changes.
        .from((from) =>
          from
            .selectFrom('sends')
            .select(['id as locked_id', 'state as state_before'])
            .where('application_id', '=', applicationId)
            .where('id', '=', id)
            .where('state', 'in', states)
            .$if(owner !== undefined, (query) => query.where('owner', 'is not distinct from', owner ?? null))
            .$if(isIdle, (query) => query.where(this.#isIdle()))
            .forUpdate()
            .as('locked'),
        )
        .set(changes)
        .where('application_id', '=', applicationId)
        .whereRef('sends.id', '=', 'locked.locked_id')
        .returningAll('sends')
        .returning('state_before')
        .executeTakeFirst();
      if (row === undefined) return false;
      await this.#tell(row.state_before, row, transaction);
      await more?.(transaction);
      return true;
    });
  }

  /** Whether no attempt has a row, or only one whose process is dead. */
  #isIdle() {
    const deadBefore = new Date(this.clock() - DEAD_AFTER_MS);
    return ({ eb, or, not, exists, selectFrom }: ExpressionBuilder<Tables, 'sends'>) =>
      or([
        eb('owner', 'is', null),
        not(
          exists(
            selectFrom('instances')
              .select('instances.id')
              .whereRef('instances.id', '=', 'sends.instance_id')
              .where('seen_at', '>', deadBefore),
          ),
        ),
      ]);
  }

  /** Writes the events of a change of state. They never have an address, a subject or a text of the provider. */
  async #tell(before: Send['state'], send: Send, db: Database): Promise<void> {
    if (send.state === before) return;
    const { application_id, account_id, id, provider_id, label, error, rejected } = send;
    const add = (type: EventType, more: Readonly<Record<string, unknown>> = {}): Promise<void> =>
      this.events.add(
        application_id,
        { type, accountId: account_id, data: { tracking_id: id, provider_id, label, ...more } },
        db,
      );
    const why = error === null ? {} : { error: { status: error.status, type: error.type } };
    if (send.state === 'sent') await add('email.sent');
    if (send.state === 'failed') await add('email.failed', why);
    if (send.state === 'unknown') await add('email.outcome_unknown');
    else if (before === 'unknown') await add('email.outcome_resolved', { state: send.state });
    // Who they are is in the email: GET /v2/emails/{tracking_id}.
    if (send.state === 'sent' && rejected.length > 0)
      await add('email.recipient_rejected', { recipients: rejected.length });
  }

  /** How many sends of all applications have no outcome, and since when the oldest one has none. */
  async pending(): Promise<readonly { readonly state: string; readonly sends: number; readonly oldestMs: number }[]> {
    const rows = await this.db
      .selectFrom('sends')
      .select(({ fn }) => [
        'state',
        fn.countAll<string>().as('sends'),
        fn.min(fn.coalesce('dispatched_at', 'created_at')).as('since'),
      ])
      .where('state', 'in', UNSETTLED)
      .groupBy('state')
      .execute();
    const now = this.clock();
    return UNSETTLED.map((state) => {
      const row = rows.find((each) => each.state === state);
      const oldestMs = row === undefined ? 0 : Math.max(0, now - row.since.getTime());
      return { state, sends: Number(row?.sends ?? 0), oldestMs };
    });
  }

  isOlder(time: Date, ageMs: number): boolean {
    return time.getTime() < this.clock() - ageMs;
  }

  /**
   * Rows that were dispatched so long ago that their attempt has ended, and rows without a known outcome of the last
   * hour, of all applications. Those with fewer attempts come first, so that emails that cannot be looked up do not
   * keep the others waiting.
   */
  async unsettled(ageMs: number, limit: number): Promise<readonly Send[]> {
    const now = this.clock();
    return this.db
      .selectFrom('sends')
      .selectAll()
      .where('dispatched_at', '<', new Date(now - ageMs))
      .where(({ eb, or, and }) =>
        or([
          // A keyed draft without an owner waits for the client's retry.
          and([
            eb('state', '=', 'dispatched'),
            or([eb('owner', 'is not', null), eb('draft_ref', 'is', null), eb('idempotency_key', 'is', null)]),
          ]),
          and([eb('state', '=', 'unknown'), eb('dispatched_at', '>', new Date(now - LOOK_FOR_MS))]),
        ]),
      )
      .orderBy('attempt')
      .orderBy('dispatched_at')
      .limit(limit)
      .execute();
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

  /** What the provider calls an email that was sent without knowing it. */
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
      await this.#settle(
        { applicationId: application_id, id, states: ['prepared'] },
        { state: 'failed', owner: null, error: json(error), settled_at: new Date(now) },
      );
  }

  /**
   * Forgets idempotency keys that are older than their retention, of all applications.
   * @param graceMs how long an attempt may take: one that began just before the end still needs its key
   */
  async forgetKeys(graceMs: number): Promise<void> {
    await this.db
      .updateTable('sends')
      .set({ idempotency_key: null })
      .where('idempotency_key', 'is not', null)
      .where('created_at', '<', new Date(this.clock() - KEY_RETENTION_MS - graceMs))
      .execute();
  }

  /**
   * Erases what is remembered of emails that were settled 7 days ago, of all applications.
   * @param limit rows per call
   * @returns how many rows were changed
   */
  async eraseContents(limit: number): Promise<number> {
    const { numUpdatedRows } = await this.db
      .updateTable('sends')
      .set({ envelope: null })
      .where('id', 'in', this.#settledBefore(ENVELOPE_RETENTION_MS, limit).where('envelope', 'is not', null))
      .executeTakeFirstOrThrow();
    return Number(numUpdatedRows);
  }

  /**
   * Deletes emails that were settled 30 days ago, with the hits of their links and pixels, of all applications.
   * @param limit rows per call
   * @returns how many rows were deleted
   */
  async deleteOld(limit: number): Promise<number> {
    const { numDeletedRows } = await this.db
      .deleteFrom('sends')
      .where('id', 'in', this.#settledBefore(SEND_RETENTION_MS, limit))
      .executeTakeFirstOrThrow();
    return Number(numDeletedRows);
  }

  /** Another process may do the same: each takes rows that the other one has not locked. */
  #settledBefore(ageMs: number, limit: number) {
    return this.db
      .selectFrom('sends')
      .select('id')
      .where('state', 'in', SETTLED)
      .where(({ fn }) => fn.coalesce('settled_at', 'dispatched_at'), '<', new Date(this.clock() - ageMs))
      .limit(limit)
      .forUpdate()
      .skipLocked();
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
