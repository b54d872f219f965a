import { sql } from 'kysely';
import type { Logger } from 'pino';
import type { Database } from '../db/database.ts';
import type { Clock } from '../domain/clock.ts';
import type { Events } from '../webhooks/events.ts';
import type { TrackingTokens } from './tracking-tokens.ts';
import type { Visitor } from './visitor.ts';

/** A request for a pixel, or for a link of an email. */
export interface Hit {
  readonly sendId: string;
  /** Null: the pixel. */
  readonly linkNo: number | null;
  readonly visitor: Visitor;
}

/** How often persons opened an email and followed its links. */
export interface HitCounts {
  readonly opens: number;
  readonly clicks: number;
}

/** More hits that wait for the database are not stored. */
export const MAX_PENDING = 100;
/** More hits of one email are not stored: everyone who received the email can make them. */
export const MAX_HITS_PER_SEND = 10_000;

/** The hits of tracked emails. */
export class Tracking {
  readonly #pending = new Set<Promise<void>>();
  #dropped = 0;

  constructor(
    private readonly db: Database,
    private readonly clock: Clock,
    private readonly log: Logger,
    readonly tokens: TrackingTokens,
    private readonly events: Events,
  ) {}

  /** Stores a hit later. It never fails and never waits: while the database is too slow, hits are lost. */
  record(hit: Hit): void {
    if (this.#pending.size >= MAX_PENDING) {
      this.#dropped++;
      return;
    }
    const writing = this.#insert(hit, new Date(this.clock()))
      .catch((error: unknown) => this.log.warn({ err: error }, 'a hit of a tracked email was not stored'))
      .finally(() => {
        this.#pending.delete(writing);
        if (this.#pending.size > 0 || this.#dropped === 0) return;
        this.log.warn({ hits: this.#dropped }, 'hits of tracked emails were not stored: the database was too slow');
        this.#dropped = 0;
      });
    this.#pending.add(writing);
  }

  async countsOf(applicationId: string, sendId: string): Promise<HitCounts> {
    const counts = await this.countsOfAll(applicationId, [sendId]);
    return counts.get(sendId) ?? { opens: 0, clicks: 0 };
  }

  /** The counts of several emails, by their ids. An email without hits is missing. */
  async countsOfAll(applicationId: string, sendIds: readonly string[]): Promise<ReadonlyMap<string, HitCounts>> {
    if (sendIds.length === 0) return new Map();
    const rows = await this.db
      .selectFrom('tracking_hits')
      .select(({ fn }) => [
        'send_id',
        fn.countAll<string>().filterWhere('kind', '=', 'open').as('opens'),
        fn.countAll<string>().filterWhere('kind', '=', 'link').as('clicks'),
      ])
      .where('application_id', '=', applicationId)
      .where('send_id', 'in', sendIds)
      .where('class', '=', 'person')
      .groupBy('send_id')
      .execute();
    return new Map(
      rows.map(({ send_id, opens, clicks }) => [send_id, { opens: Number(opens), clicks: Number(clicks) }]),
    );
  }

  /** Waits for the hits that are being stored. */
  async close(): Promise<void> {
    await Promise.all(this.#pending);
  }

  /** The sealed token named the send, so its row names the application. Hits of a deleted row are dropped. */
  async #insert(hit: Hit, at: Date): Promise<void> {
    const { sendId, linkNo, visitor } = hit;
    await this.db.transaction().execute(async (transaction) => {
      const row = await transaction
        .insertInto('tracking_hits')
        .columns(['application_id', 'send_id', 'kind', 'link_no', 'class', 'at'])
        .expression((db) =>
          db
            .selectFrom('sends')
            .select([
              'application_id',
              'id',
              sql<'open' | 'link'>`${linkNo === null ? 'open' : 'link'}::text`.as('kind'),
              sql<number | null>`${linkNo}::integer`.as('link_no'),
              sql<Visitor>`${visitor}::text`.as('class'),
              sql<Date>`${at}::timestamptz`.as('at'),
            ])
            .where('id', '=', sendId)
            .where(
              ({ selectFrom }) =>
                selectFrom('tracking_hits')
                  .select(({ fn }) => fn.countAll<string>().as('count'))
                  .where('send_id', '=', sendId),
              '<',
              String(MAX_HITS_PER_SEND),
            ),
        )
        .returning('application_id')
        .executeTakeFirst();
      // Hits that are not counted make no event.
      if (row !== undefined && visitor === 'person') await this.#tell(row.application_id, hit, transaction);
    });
  }

  /** The event of a hit, without anything about the person. */
  async #tell(applicationId: string, { sendId, linkNo }: Hit, db: Database): Promise<void> {
    const { account_id, label } = await db
      .selectFrom('sends')
      .select(['account_id', 'label'])
      .where('application_id', '=', applicationId)
      .where('id', '=', sendId)
      .executeTakeFirstOrThrow();
    const data = { tracking_id: sendId, label, ...(linkNo === null ? {} : { link_no: linkNo }) };
    const type = linkNo === null ? 'tracking.open' : 'tracking.link';
    await this.events.add(applicationId, { type, accountId: account_id, data }, db);
  }
}
