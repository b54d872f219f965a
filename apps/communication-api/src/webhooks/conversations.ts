import type { Selectable } from 'kysely';
import type { Database } from '../db/database.ts';
import { onPage } from '../db/page.ts';
import type { WebhookConversationRow } from '../db/tables.ts';
import type { Clock } from '../domain/clock.ts';
import { firstIdAt, isId, newId } from '../domain/ids.ts';
import type { Page } from '../domain/page.ts';

export type Conversation = Selectable<WebhookConversationRow>;

/** Which conversations are listed. */
export interface ConversationFilter {
  readonly endpointId?: string | undefined;
  readonly eventId?: string | undefined;
  readonly outcome?: Conversation['outcome'] | undefined;
}

/** How long conversations are kept. */
const RETENTION_MS = 14 * 86_400_000;

/** Requests to endpoints, and their answers: one row per attempt. */
export class Conversations {
  constructor(
    private readonly db: Database,
    private readonly clock: Clock,
  ) {}

  async add(applicationId: string, conversation: Omit<Conversation, 'id' | 'application_id'>): Promise<void> {
    await this.db
      .insertInto('webhook_conversations')
      .values({ id: newId('whc', conversation.created_at.getTime()), application_id: applicationId, ...conversation })
      .execute();
  }

  /** One page, and the first entry of the next page if there is one. */
  async list(
    applicationId: string,
    { endpointId, eventId, outcome }: ConversationFilter,
    page: Page,
  ): Promise<readonly Conversation[]> {
    // Another text cannot name anything.
    if (endpointId !== undefined && !isId(endpointId, 'whe')) return [];
    if (eventId !== undefined && !isId(eventId, 'evt')) return [];
    return this.db
      .selectFrom('webhook_conversations')
      .selectAll()
      .where('application_id', '=', applicationId)
      .$if(endpointId !== undefined, (query) => query.where('endpoint_id', '=', endpointId ?? ''))
      .$if(eventId !== undefined, (query) => query.where('event_id', '=', eventId ?? ''))
      .$if(outcome !== undefined, (query) => query.where('outcome', '=', outcome ?? 'failed'))
      .$call(onPage(page))
      .execute();
  }

  /** The last attempt of each endpoint that was sent something. */
  async lastOfEach(applicationId: string): Promise<readonly Conversation[]> {
    return this.db
      .selectFrom('webhook_endpoints as endpoint')
      .innerJoinLateral(
        (from) =>
          from
            .selectFrom('webhook_conversations')
            .selectAll()
            .where('application_id', '=', applicationId)
            .whereRef('endpoint_id', '=', 'endpoint.id')
            .orderBy('id', 'desc')
            .limit(1)
            .as('last'),
        (join) => join.onTrue(),
      )
      .selectAll('last')
      .where('endpoint.application_id', '=', applicationId)
      .execute();
  }

  /**
   * Deletes conversations of 14 days ago, of all applications.
   * @param limit rows per call
   * @returns how many rows were deleted
   */
  async deleteOld(limit: number): Promise<number> {
    const { numDeletedRows } = await this.db
      .deleteFrom('webhook_conversations')
      .where('id', 'in', (db) =>
        db
          .selectFrom('webhook_conversations')
          .select('id')
          .where('id', '<', firstIdAt('whc', this.clock() - RETENTION_MS))
          .limit(limit)
          // Another process may do the same.
          .forUpdate()
          .skipLocked(),
      )
      .executeTakeFirstOrThrow();
    return Number(numDeletedRows);
  }
}
