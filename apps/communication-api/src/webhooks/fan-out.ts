import type { Database } from '../db/database.ts';
import type { EventType } from '../domain/event-types.ts';
import { ServiceError } from '../domain/service-error.ts';
import type { PendingJob } from '../jobs/job.ts';
import type { Queue } from '../jobs/queue.ts';
import { type Endpoints, WEBHOOK_JOB } from './endpoints.ts';
import type { Event } from './event.ts';
import { findEvent } from './event.ts';

/** An event, as its endpoints are chosen by it. */
interface AddedEvent {
  readonly id: string;
  readonly type: EventType;
  readonly accountId: string | null;
}

/** Adds the jobs that deliver events: one per endpoint that takes the event. */
export class FanOut {
  constructor(
    private readonly db: Database,
    private readonly endpoints: Endpoints,
    private readonly queue: Queue,
  ) {}

  /**
   * In the transaction that adds the event.
   * @param stored the start of the statement that adds it: the endpoints are read by the same one
   */
  async add(
    applicationId: string,
    { id, type, accountId }: AddedEvent,
    stored: Pick<Database, 'selectFrom'>,
    db: Database,
  ): Promise<void> {
    const endpointIds = await this.endpoints.subscribers(applicationId, type, accountId, stored);
    await this.#deliver(applicationId, id, endpointIds, db);
  }

  /**
   * Delivers an event again, from the first attempt on.
   * @param endpointId the only receiver, whatever it subscribes to. Default: the endpoints that take the event
   * @param db the transaction of the caller, if there is one
   * @returns the endpoints that receive it
   * @throws ServiceError 404 if the event or the endpoint is unknown, 409 if no enabled endpoint would receive it
   */
  async redeliver(
    applicationId: string,
    eventId: string,
    endpointId?: string,
    db: Database = this.db,
  ): Promise<readonly string[]> {
    const event = await findEvent(applicationId, eventId, db);
    if (event === undefined) throw unknown('event');
    const endpointIds =
      endpointId === undefined
        ? await this.endpoints.subscribers(applicationId, event.type, event.account_id, db)
        : [await this.#enabled(applicationId, endpointId, db)];
    if (endpointIds.length === 0)
      throw new ServiceError(409, 'errors/conflict', 'No enabled endpoint of your application takes this event.');
    await this.#deliver(applicationId, eventId, endpointIds, db);
    return endpointIds;
  }

  /** An event of an application, if it still exists. */
  async findEvent(applicationId: string, id: string): Promise<Event | undefined> {
    return findEvent(applicationId, id, this.db);
  }

  /** The delivery of an event to an endpoint, if it is neither done nor given up. */
  async findPending(applicationId: string, endpointId: string, eventId: string): Promise<PendingJob | undefined> {
    return this.queue.table.find(applicationId, { kind: WEBHOOK_JOB, lane: endpointId, subject: eventId });
  }

  /** How many events an endpoint will receive, or receive again. */
  async countPending(applicationId: string, endpointId: string): Promise<number> {
    return this.queue.table.count(applicationId, WEBHOOK_JOB, endpointId);
  }

  async #enabled(applicationId: string, id: string, db: Database): Promise<string> {
    const endpoint = await this.endpoints.find(applicationId, id, db);
    if (endpoint === undefined) throw unknown('endpoint');
    if (!endpoint.enabled) throw new ServiceError(409, 'errors/conflict', 'The endpoint is disabled. Enable it first.');
    return id;
  }

  async #deliver(applicationId: string, eventId: string, endpointIds: readonly string[], db: Database): Promise<void> {
    const jobs = endpointIds.map((lane) => ({ kind: WEBHOOK_JOB, lane, subject: eventId }));
    await this.queue.add(applicationId, jobs, db);
  }
}

const unknown = (what: 'event' | 'endpoint'): ServiceError =>
  new ServiceError(404, 'errors/invalid_resource_identifier', `No ${what} of your application has this id.`);
