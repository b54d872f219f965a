import type { Database } from '../db/database.ts';
import type { Clock } from '../domain/clock.ts';
import { KEY_RETENTION_MS } from './claims.ts';

/** How long the addresses and the subject of an email are remembered, for the emails that answer it. */
const ENVELOPE_RETENTION_MS = 7 * 86_400_000;
const SEND_RETENTION_MS = 30 * 86_400_000;
/** The states of a row that no attempt works on any more. An outcome that is `unknown` is looked for during an hour. */
const SETTLED = ['sent', 'failed', 'unknown'] as const;

/** The parts of the send journal whose time is over, of all applications. */
export class OldSends {
  constructor(
    private readonly db: Database,
    private readonly clock: Clock,
  ) {}

  /**
   * Forgets the idempotency keys of emails whose outcome has been known for the retention, of all applications: the claim
   * is forgotten at the same time. A key without an outcome stays.
   */
  async forgetKeys(): Promise<void> {
    await this.db
      .updateTable('sends')
      .set({ idempotency_key: null })
      .where('idempotency_key', 'is not', null)
      .where('settled_at', '<', new Date(this.clock() - KEY_RETENTION_MS))
      .execute();
  }

  /**
   * Erases the stored contents of emails that were settled 7 days ago, of all applications.
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

  /** Another process may do the same: each process takes rows that the other did not lock. */
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
}
