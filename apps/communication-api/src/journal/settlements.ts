import type { ExpressionBuilder, Updateable } from 'kysely';
import { type Database, inTransaction } from '../db/database.ts';
import type { SendRow, Tables } from '../db/tables.ts';
import type { Clock } from '../domain/clock.ts';
import type { Events, EventType } from '../webhooks/events.ts';
import { DEAD_AFTER_MS } from './instances.ts';
import type { Send } from './send-records.ts';

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
  /** The attempt that must own the row; null: no attempt may own it. Default: the owner does not matter. */
  readonly owner?: string | null;
  /** Whether no process that is alive may be working on the row. Default: one may. */
  readonly isIdle?: boolean;
}

/** The ends of attempts. */
export class Settlements {
  constructor(
    private readonly db: Database,
    private readonly clock: Clock,
    private readonly events: Events,
  ) {}

  /**
   * Ends an attempt, and reports the change to the application.
   * @param expected the row to change; a row in another state, or with another owner, stays as it is
   * @param more other writes, if the row was changed
   * @returns whether the row was changed
   */
  async settle(
    { applicationId, id, states, owner, isIdle = false }: Expected,
    changes: Updateable<SendRow>,
    more?: (transaction: Database) => Promise<unknown>,
    db: Database = this.db,
  ): Promise<boolean> {
    return inTransaction(db, async (transaction) => {
      const row = await transaction
        .updateTable('sends')
        // Locked first, so that the state is still the same when this statement changes it.
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

  /** Whether a row is unowned, or the process of its attempt is dead. */
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

  /** Writes the events of a change of state. Events never contain an address, a subject or a text of the provider. */
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
    // The email names them: GET /v2/emails/{tracking_id}.
    if (send.state === 'sent' && rejected.length > 0)
      await add('email.recipient_rejected', { recipients: rejected.length });
  }
}
