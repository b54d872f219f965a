import type { Database } from '../db/database.ts';

/** Work that is done after the transaction that asked for it: at least once, also if processes die. */
export interface NewJob {
  /** Which handler does it. */
  readonly kind: string;
  /** The resource that the job uses, for example the id of an endpoint. A slow lane delays no other lane. */
  readonly lane: string;
  /** The subject of the job, for example the id of an event. A job that is there already is not added a second time. */
  readonly subject: string;
}

export interface Job extends NewJob {
  readonly applicationId: string;
  /** When it was added. */
  readonly addedAt: Date;
  /** 1 for the first attempt. An attempt whose process died counts. */
  readonly attempt: number;
}

/** A job that is not done. */
export interface PendingJob {
  /** Attempts that were begun. */
  readonly attempt: number;
  /** Whether an attempt is running. */
  readonly isTaken: boolean;
  /** When the next attempt may begin. */
  readonly nextAt: Date;
}

/** The queue's next step with a job after an attempt. */
export type JobOutcome = 'done' | { readonly retryInMs: number };

/** A job that belonged to this process, and what comes next. */
export interface EndedJob {
  readonly job: Job;
  /** `not begun`: another attempt does it, and this one does not count. */
  readonly outcome: JobOutcome | 'not begun';
}

/** Deletes what the jobs of an application are about, in the statement that deletes the jobs. */
export type DeleteWithJobs = (
  db: Database,
  applicationId: string,
  subjects: readonly string[],
) => Pick<Database, 'deleteFrom'>;
