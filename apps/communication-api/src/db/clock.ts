import { sql } from 'kysely';
import type { Database } from './database.ts';

/** The difference between the clocks of this process and of the database. */
export interface ClockDifference {
  /** Positive: this process is ahead. */
  readonly offsetMs: number;
  /** The difference may be this much more or less, since the answer took its time. */
  readonly uncertainMs: number;
}

const TRIES = 5;

/** Asks the database for its time a few times, and takes the fastest answer: it is the most exact. */
export async function clockOf(db: Database): Promise<ClockDifference> {
  let best: ClockDifference | undefined;
  for (let count = 0; count < TRIES; count++) {
    const from = performance.now();
    const { rows } = await sql<{ now: Date }>`select clock_timestamp() as now`.execute(db);
    const halfMs = (performance.now() - from) / 2;
    const offsetMs = Date.now() - halfMs - new Date(rows[0]?.now ?? 0).getTime();
    if (best === undefined || halfMs < best.uncertainMs) best = { offsetMs, uncertainMs: halfMs };
  }
  return best as ClockDifference;
}
