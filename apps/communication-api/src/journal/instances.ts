import { hostname } from 'node:os';
import type { Selectable } from 'kysely';
import type { Logger } from 'pino';
import type { Database } from '../db/database.ts';
import type { InstanceRow } from '../db/tables.ts';
import type { Clock } from '../domain/clock.ts';
import type { ProcessRole } from '../domain/process-role.ts';

export type Instance = Selectable<InstanceRow>;

const BEAT_MS = 3_000;
/** A process whose last sign is older is dead or frozen. */
const DEAD_AFTER_MS = 10_000;
const FORGET_AFTER_MS = 3_600_000;

/** The running processes, for the operator. Each one writes a sign of life. */
export class Instances {
  #timer: NodeJS.Timeout | undefined;
  #startedAt = new Date(0);

  constructor(
    private readonly db: Database,
    private readonly clock: Clock,
    private readonly log: Logger,
    /** The id of this process. */
    readonly id: string,
    private readonly role: ProcessRole = 'all',
  ) {}

  /** Announces this process, and begins its signs of life. */
  async start(): Promise<void> {
    this.#startedAt = new Date(this.clock());
    await this.#show(this.#startedAt);
    this.#timer = setInterval(() => void this.#beat(), BEAT_MS);
    this.#timer.unref();
  }

  /** Ends the signs of life. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.db.deleteFrom('instances').where('id', '=', this.id).execute();
  }

  /** The processes that show signs of life. */
  async alive(): Promise<readonly Instance[]> {
    return this.db
      .selectFrom('instances')
      .selectAll()
      .where('seen_at', '>', new Date(this.clock() - DEAD_AFTER_MS))
      .orderBy('started_at')
      .execute();
  }

  /** Another process, whose clock is an hour ahead, may delete the row. */
  async #show(now: Date): Promise<void> {
    const row = { id: this.id, host: hostname(), pid: process.pid, role: this.role, started_at: this.#startedAt };
    await this.db
      .insertInto('instances')
      .values({ ...row, seen_at: now })
      .onConflict((conflict) => conflict.column('id').doUpdateSet({ seen_at: now }))
      .execute();
  }

  async #beat(): Promise<void> {
    const now = this.clock();
    try {
      await this.#show(new Date(now));
      await this.db
        .deleteFrom('instances')
        .where('seen_at', '<', new Date(now - FORGET_AFTER_MS))
        .execute();
    } catch (error) {
      this.log.warn({ err: error }, 'the sign of life of this process was not written');
    }
  }
}
