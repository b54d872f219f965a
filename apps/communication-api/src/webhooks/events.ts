import type { Database } from '../db/database.ts';
import { json } from '../db/json.ts';
import type { Clock } from '../domain/clock.ts';
import type { EventType } from '../domain/event-types.ts';
import { firstIdAt, newId } from '../domain/ids.ts';
import type { FanOut } from './fan-out.ts';

export type { EventType };

/** Something that happened, for the application to know. */
export interface NewEvent {
  readonly type: EventType;
  /** The account that it is about, if it is about one. */
  readonly accountId: string | null;
  /** Never a secret, and never an address or a subject of an email. */
  readonly data: Readonly<Record<string, unknown>>;
}

/** How long events are kept: so long they can be delivered again. */
const RETENTION_MS = 30 * 86_400_000;

/**
 * The events of all applications. Each event is written in the transaction that causes it, with a job per endpoint that
 * takes it: so none of these exists without the others.
 */
export class Events {
  /** @param fanOut delivers them. Default: they are only stored */
  constructor(
    private readonly clock: Clock,
    private readonly fanOut?: Pick<FanOut, 'add' | 'redeliver'>,
  ) {}

  async add(applicationId: string, event: NewEvent, db: Database): Promise<void> {
    const row = { application_id: applicationId, ...this.#rowOf(event) };
    if (this.fanOut === undefined) {
      await db.insertInto('events').values(row).execute();
      return;
    }
    const stored = db.with('event', (query) => query.insertInto('events').values(row));
    await this.fanOut.add(applicationId, { ...event, id: row.id }, stored, db);
  }

  /**
   * Adds an event that only one endpoint receives, whatever it asks for: it shows whether the endpoint works.
   * @returns the id of the event
   * @throws ServiceError 404 if the endpoint is unknown, 409 if it is disabled
   */
  async addTest(applicationId: string, endpointId: string, db: Database): Promise<string> {
    const data = { endpoint_id: endpointId };
    const test = this.#rowOf({ type: 'webhook.test', accountId: null, data });
    const row = { application_id: applicationId, ...test };
    await db.insertInto('events').values(row).execute();
    await this.fanOut?.redeliver(applicationId, row.id, endpointId, db);
    return row.id;
  }

  #rowOf({ type, accountId, data }: NewEvent) {
    const now = this.clock();
    return {
      id: newId('evt', now),
      account_id: accountId,
      type,
      data: json(data),
      created_at: new Date(now),
    };
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
          .where('id', '<', firstIdAt('evt', this.clock() - RETENTION_MS))
          .limit(limit)
          // Another process may do the same.
          .forUpdate()
          .skipLocked(),
      )
      .executeTakeFirstOrThrow();
    return Number(numDeletedRows);
  }
}
