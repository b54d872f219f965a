import type { Database } from '../db/database.ts';
import { json } from '../db/json.ts';
import type { Clock } from '../domain/clock.ts';
import { newId } from '../domain/ids.ts';

/** Every kind of event. */
export const EVENT_TYPES = [
  'account.connected',
  'account.reconnected',
  'account.disconnected',
  'account.errored',
  'account.recovered',
  'account.paused',
  'account.resumed',
  'account.removed',
  'account.sync.started',
  'account.sync.progress',
  'account.sync.completed',
  'account.sync.failed',
  'email.sent',
  'email.failed',
  'email.outcome_unknown',
  'email.outcome_resolved',
  'email.recipient_rejected',
  'tracking.open',
  'tracking.link',
  'webhook.endpoint_disabled',
] as const;

export type EventType = (typeof EVENT_TYPES)[number];

/** Something that happened, for the application to know. */
export interface NewEvent {
  readonly type: EventType;
  /** The account that it is about, if it is about one. */
  readonly accountId: string | null;
  /** Never a secret, and never an address or a subject of an email. */
  readonly data: Readonly<Record<string, unknown>>;
}

const RETENTION_MS = 30 * 86_400_000;

/** The events of all applications. They are written in the transaction of what happened, so neither exists alone. */
export class Events {
  constructor(private readonly clock: Clock) {}

  async add(applicationId: string, { type, accountId, data }: NewEvent, db: Database): Promise<void> {
    const now = this.clock();
    await db
      .insertInto('events')
      .values({
        id: newId('evt', now),
        application_id: applicationId,
        account_id: accountId,
        type,
        data: json(data),
        created_at: new Date(now),
      })
      .execute();
  }

  /**
   * Deletes events of 30 days ago, of all applications.
   * @param limit events per call
   * @returns how many events were deleted
   */
  async deleteOld(limit: number, db: Database): Promise<number> {
    const { numDeletedRows } = await db
      .deleteFrom('events')
      .where('id', 'in', (eb) =>
        eb
          .selectFrom('events')
          .select('id')
          .where('created_at', '<', new Date(this.clock() - RETENTION_MS))
          .limit(limit)
          // Another process may do the same.
          .forUpdate()
          .skipLocked(),
      )
      .executeTakeFirstOrThrow();
    return Number(numDeletedRows);
  }
}
