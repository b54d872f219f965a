import { sql } from 'kysely';
import type { Database } from '../../db/database.ts';
import type { Clock } from '../../domain/clock.ts';
import type { Page } from '../../domain/page.ts';

/** Of a long message, only the beginning is stored. */
export const MAX_RAW = 262_144;

/** A message as the mock stores it. */
export interface MockMail {
  readonly messageId: string;
  readonly thread: string;
  readonly recipients: readonly string[];
  /** At most {@link MAX_RAW} bytes. */
  readonly raw: Uint8Array;
  readonly size: number;
}

/** A message in the mailbox of a mock account. */
export interface MockMessage extends MockMail {
  readonly id: number;
  readonly at: Date;
}

/** An entry of a list of messages. */
export interface MockEntry extends Pick<MockMessage, 'messageId' | 'recipients' | 'size' | 'at'> {
  /** The provider's own id: see {@link providerIdOf}. */
  readonly id: string;
  /** The first bytes of the message, with most of its head. */
  readonly start: Uint8Array;
}

const START_BYTES = 16_384;

/** The id by which a client knows a message. */
export const providerIdOf = ({ id }: Pick<MockMessage, 'id'>): string => `mock-${id}`;

/** The message that such an id names. Undefined: none. */
export function numberIn(providerId: string): number | undefined {
  const [, number] = /^mock-(\d{1,9})$/.exec(providerId) ?? [];
  return number === undefined ? undefined : Number(number);
}

/**
 * The mailboxes of the mock provider. They are in the database, so all processes and all restarts see the same ones.
 */
export class MockMailbox {
  constructor(
    private readonly db: Database,
    private readonly clock: Clock,
  ) {}

  async deliver(accountId: string, mail: MockMail): Promise<MockMessage> {
    return this.db
      .insertInto('mock_messages')
      .values(this.#row(accountId, mail))
      .returning(COLUMNS)
      .executeTakeFirstOrThrow()
      .then(messageOf);
  }

  async saveDraft(accountId: string, id: string, mail: MockMail): Promise<void> {
    await this.db
      .insertInto('mock_drafts')
      .values({ id, ...this.#row(accountId, mail) })
      .execute();
  }

  async draft(accountId: string, id: string): Promise<MockMail | undefined> {
    const row = await this.db
      .selectFrom('mock_drafts')
      .select(['message_id', 'thread', 'recipients', 'raw', 'size'])
      .where('account_id', '=', accountId)
      .where('id', '=', id)
      .executeTakeFirst();
    return row && { messageId: row.message_id, ...row };
  }

  /** Whether there was such a draft. */
  async deleteDraft(accountId: string, id: string): Promise<boolean> {
    const { numDeletedRows } = await this.db
      .deleteFrom('mock_drafts')
      .where('account_id', '=', accountId)
      .where('id', '=', id)
      .executeTakeFirstOrThrow();
    return numDeletedRows === 1n;
  }

  /**
   * Moves a draft into the mailbox, in one statement, so that it is sent once. Undefined if the draft does not exist.
   */
  async deliverDraft(accountId: string, id: string): Promise<MockMessage | undefined> {
    const row = await this.db
      .with('draft', (db) =>
        db.deleteFrom('mock_drafts').where('account_id', '=', accountId).where('id', '=', id).returningAll(),
      )
      .insertInto('mock_messages')
      .columns(['account_id', 'message_id', 'thread', 'recipients', 'raw', 'size', 'at'])
      .expression((db) =>
        db
          .selectFrom('draft')
          .select(['account_id', 'message_id', 'thread', 'recipients', 'raw', 'size'])
          .select(sql<Date>`${new Date(this.clock())}::timestamptz`.as('at')),
      )
      .returning(COLUMNS)
      .executeTakeFirst();
    return row && messageOf(row);
  }

  async byMessageId(accountId: string, messageId: string): Promise<MockMessage | undefined> {
    const row = await this.db
      .selectFrom('mock_messages')
      .select(COLUMNS)
      .where('account_id', '=', accountId)
      .where('message_id', '=', messageId)
      .executeTakeFirst();
    return row && messageOf(row);
  }

  async byId(accountId: string, id: number): Promise<MockMessage | undefined> {
    const row = await this.db
      .selectFrom('mock_messages')
      .select(COLUMNS)
      .where('account_id', '=', accountId)
      .where('id', '=', id)
      .executeTakeFirst();
    return row && messageOf(row);
  }

  /** One page, the newest first, and the first entry of the next page if there is one. */
  async list(accountId: string, { limit, offset, before }: Page): Promise<readonly MockEntry[]> {
    const rows = await this.db
      .selectFrom('mock_messages')
      .select(['id', 'message_id', 'recipients', 'size', 'at'])
      .select(sql<Uint8Array>`substring(raw from 1 for ${sql.lit(START_BYTES)})`.as('start'))
      .where('account_id', '=', accountId)
      .$if(before !== undefined, (query) => query.where('id', '<', numberIn(before ?? '') ?? 0))
      .orderBy('id', 'desc')
      .limit(limit + 1)
      .offset(offset)
      .execute();
    return rows.map(({ message_id, ...row }) => ({ ...row, id: providerIdOf(row), messageId: message_id }));
  }

  #row(accountId: string, { messageId, thread, recipients, raw, size }: MockMail) {
    const at = new Date(this.clock());
    return { account_id: accountId, message_id: messageId, thread, recipients: [...recipients], raw, size, at };
  }
}

const COLUMNS = ['id', 'message_id', 'thread', 'recipients', 'raw', 'size', 'at'] as const;

const messageOf = ({ message_id, ...row }: { message_id: string } & Omit<MockMessage, 'messageId'>): MockMessage => ({
  ...row,
  messageId: message_id,
});
