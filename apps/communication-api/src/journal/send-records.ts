import { type Selectable, sql } from 'kysely';
import type { Database } from '../db/database.ts';
import { onPage } from '../db/page.ts';
import type { SendRow } from '../db/tables.ts';
import type { Clock } from '../domain/clock.ts';
import { type EmailState, journalStateOf } from '../domain/email-state.ts';
import { isId } from '../domain/ids.ts';
import { keyName } from '../domain/key-name.ts';
import type { Page } from '../domain/page.ts';
import type { Envelope } from '../security/envelope.ts';
import { KEY_RETENTION_MS } from './claims.ts';

export type Send = Selectable<SendRow>;

/** The sealed parts of an email that later answers to it need. */
export interface SendContent {
  readonly to: readonly string[];
  readonly subject: string | null;
  readonly references: readonly string[];
}

/** Which emails are listed. */
export interface SendFilter {
  readonly state?: EmailState | undefined;
  /** Only emails of one of these accounts. */
  readonly accountIds?: readonly string[] | undefined;
  /** Only emails of accounts in this scope. Null: of all accounts. */
  readonly scopeId?: string | null | undefined;
}

/** How long an email whose outcome is unknown is looked for. */
export const LOOK_FOR_MS = 3_600_000;
/** The states of a row without a known outcome. */
const UNSETTLED = ['dispatched', 'unknown'] as const;

const place = (id: string): string => `sends/${id}/envelope`;

/** Reads the send journal, for callers that change nothing. */
export class SendRecords {
  constructor(
    private readonly db: Database,
    private readonly envelope: Envelope,
    private readonly clock: Clock,
  ) {}

  async byId(applicationId: string, id: string): Promise<Send | undefined> {
    if (!isId(id, 'eml')) return undefined;
    return this.db
      .selectFrom('sends')
      .selectAll()
      .where('application_id', '=', applicationId)
      .where('id', '=', id)
      .executeTakeFirst();
  }

  /** The row of a claim, by its key: see `claimKeyOf`. */
  async byClaim(applicationId: string, key: string): Promise<Send | undefined> {
    return key.startsWith('\n')
      ? this.byId(applicationId, key.slice(1))
      : this.db
          .selectFrom('sends')
          .selectAll()
          .where('application_id', '=', applicationId)
          .where('idempotency_key', '=', key)
          .executeTakeFirst();
  }

  /**
   * One email that a caller may see: an email of its application, and of its scope if the caller is confined to one.
   */
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
      .where((eb) =>
        'id' in by ? eb('sends.id', '=', by.id) : eb('sends.idempotency_key', '=', keyName(scopeId, by.idempotencyKey)),
      )
      .$if(scopeId !== null, (query) =>
        query.innerJoin('accounts', 'accounts.id', 'sends.account_id').where('accounts.scope_id', '=', scopeId),
      )
      .executeTakeFirst();
  }

  /** One page, and the first entry of the next page if there is one. */
  async list(
    applicationId: string,
    { state, accountIds, scopeId = null }: SendFilter,
    page: Page,
  ): Promise<readonly Send[]> {
    return this.db
      .selectFrom('sends')
      .selectAll()
      .where('application_id', '=', applicationId)
      .$if(state !== undefined, (query) => query.where('state', '=', journalStateOf(state ?? 'sent')))
      .$if(accountIds !== undefined, (query) =>
        query.where('account_id', '=', sql<string>`any(${[...(accountIds ?? [])]})`),
      )
      .$if(scopeId !== null, (query) =>
        query.where('account_id', 'in', (db) =>
          db
            .selectFrom('accounts')
            .select('accounts.id')
            .where('accounts.application_id', '=', applicationId)
            .where('accounts.scope_id', '=', scopeId),
        ),
      )
      .$call(onPage(page))
      .execute();
  }

  /** How many emails of an application ended with an unknown outcome. It counts to `limit` at most. */
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

  /** The sealed content of an email, as its row stores it. */
  sealed(id: string, content: SendContent): Uint8Array {
    return this.envelope.sealJson(place(id), content);
  }

  /** The content of an email; undefined after it was erased. */
  contentOf({ id, envelope }: Send): SendContent | undefined {
    return envelope === null ? undefined : this.envelope.openJson<SendContent>(place(id), envelope);
  }

  /** How many sends of all applications lack an outcome, and the age of the oldest of them. */
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

  /**
   * Rows that were dispatched so long ago that their attempt is over, and rows of the last hour without a known
   * outcome, of all applications. Rows with fewer attempts come first, so that emails that cannot be looked up do not
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
          // A draft with a key waits for the client's retry, so it is looked for more and more seldom.
          and([
            eb('state', '=', 'dispatched'),
            or([
              eb('draft_ref', 'is', null),
              eb('idempotency_key', 'is', null),
              eb('dispatched_at', '<', new Date(now - KEY_RETENTION_MS)),
              sql<boolean>`dispatched_at < ${new Date(now)}::timestamptz - ${ageMs} * power(4, least(attempt, 9)) * interval '1 millisecond'`,
            ]),
          ]),
          and([eb('state', '=', 'unknown'), eb('dispatched_at', '>', new Date(now - LOOK_FOR_MS))]),
        ]),
      )
      .orderBy('attempt')
      .orderBy('dispatched_at')
      .limit(limit)
      .execute();
  }
}
