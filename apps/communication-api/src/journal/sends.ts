import { type Database, inTransaction } from '../db/database.ts';
import type { Clock } from '../domain/clock.ts';
import type { SentIds } from '../providers/provider.ts';
import type { Envelope } from '../security/envelope.ts';
import type { Events } from '../webhooks/events.ts';
import { OldSends } from './old-sends.ts';
import { SendNotes } from './send-notes.ts';
import { LOOK_FOR_MS, type Send, SendRecords } from './send-records.ts';

/**
 * The send journal: one row per email. The steps of its claim write the row, in the same statement: the row is there from
 * the moment when the email may be sent, or when it is known that it will not be.
 */
export class Sends {
  readonly records: SendRecords;
  readonly old: OldSends;
  readonly notes: SendNotes;

  constructor(
    private readonly db: Database,
    envelope: Envelope,
    private readonly clock: Clock,
    private readonly events: Events,
  ) {
    this.records = new SendRecords(db, envelope, clock);
    this.old = new OldSends(db, clock);
    this.notes = new SendNotes(this.records, clock);
  }

  /** It is not known whether the email was sent. Returns false if it is known by now. */
  async unknown({ application_id: applicationId, account_id: accountId, id, label }: Send): Promise<boolean> {
    return inTransaction(this.db, async (transaction) => {
      const row = await transaction
        .updateTable('sends')
        .set({ state: 'unknown' })
        .where('application_id', '=', applicationId)
        .where('id', '=', id)
        .where('state', '=', 'dispatched')
        .returning('provider_id')
        .executeTakeFirst();
      if (row === undefined) return false;
      const data = { tracking_id: id, provider_id: row.provider_id, label };
      await this.events.add(applicationId, { type: 'email.outcome_unknown', accountId, data }, transaction);
      return true;
    });
  }

  /** Counts a look for an email. Returns false if another process looks for it, or has done so. */
  async look({ application_id: applicationId, id, attempt }: Send): Promise<boolean> {
    const { numUpdatedRows } = await this.db
      .updateTable('sends')
      .set({ attempt: attempt + 1 })
      .where('application_id', '=', applicationId)
      .where('id', '=', id)
      .where('attempt', '=', attempt)
      .executeTakeFirstOrThrow();
    return numUpdatedRows === 1n;
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
    await this.db
      .updateTable('sends')
      .where('application_id', '=', applicationId)
      .where('id', '=', id)
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
}
