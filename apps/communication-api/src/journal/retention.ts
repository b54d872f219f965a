import type { Logger } from 'pino';
import { Periodic } from '../jobs/periodic.ts';

const EVERY_MS = 3_600_000;
/** A process that never runs for an hour erases, too. */
const FIRST_MS = 60_000;
/** Rows per statement, so that no statement keeps others waiting. */
const AT_ONCE = 500;

/** Rows that are erased after their time. */
export interface Retained {
  /** For the log. */
  readonly what: string;
  /** Erases at most so many rows, and returns how many. */
  erase(limit: number): Promise<number>;
}

/** Erases rows that are older than needed, every hour. Each process does so, because it may be the only process. */
export class Retention {
  readonly #periodic = new Periodic({ firstMs: FIRST_MS, everyMs: EVERY_MS }, () => this.run());

  constructor(
    private readonly all: readonly Retained[],
    private readonly log: Pick<Logger, 'info' | 'error'>,
    private readonly atOnce = AT_ONCE,
  ) {}

  start(): void {
    this.#periodic.start();
  }

  close(): Promise<void> {
    return this.#periodic.close();
  }

  /** Erases everything whose time is over. It never fails: the next run tries again. */
  async run(): Promise<void> {
    for (const { what, erase } of this.all) {
      try {
        const rows = await this.#eraseAll(erase);
        if (rows > 0) this.log.info({ what, rows }, 'old rows were erased');
      } catch (error) {
        this.log.error({ what, err: error }, 'old rows were not erased');
      }
    }
  }

  async #eraseAll(erase: Retained['erase']): Promise<number> {
    let rows = 0;
    while (!this.#periodic.signal.aborted) {
      const erased = await erase(this.atOnce);
      rows += erased;
      if (erased < this.atOnce) break;
    }
    return rows;
  }
}
