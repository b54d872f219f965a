import { channel } from 'node:diagnostics_channel';
import { sql } from 'kysely';
import type { Logger } from 'pino';
import type { Database } from '../db/database.ts';
import type { Clock } from '../domain/clock.ts';

/** Work that is done after the transaction that asked for it: at least once, also if processes die. */
export interface NewJob {
  /** Which handler does it. */
  readonly kind: string;
  /** What the job works with, for example the id of an endpoint. A slow lane delays no other lane. */
  readonly lane: string;
  /** What the job is about, for example the id of an event. A job that is there already is not added a second time. */
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
  /** Attempts that have begun. */
  readonly attempt: number;
  /** Whether an attempt is running. */
  readonly isTaken: boolean;
  /** When the next attempt may begin. */
  readonly nextAt: Date;
}

/** What the queue does with a job after an attempt. */
export type JobOutcome =
  | 'done'
  | { readonly retryInMs: number }
  /** Done, with what is deleted by the statement that deletes the job. */
  | { doneWith(db: Database): Pick<Database, 'deleteFrom'> };

/** Does the jobs of one kind. */
export interface JobHandler {
  /** How many jobs of a lane this process does at once. */
  readonly perLane: number;
  /** After this time `signal` aborts with a `TimeoutError`, and the attempt has failed. */
  readonly deadlineMs: number;
  /** One attempt. If it throws, the error is logged, and the job is tried again in a minute. */
  run(job: Job, signal: AbortSignal): Promise<JobOutcome>;
}

/** A moment in the life of a job: its row was taken, or its attempt has ended and its row was not changed yet. */
export type JobStep = 'job taken' | 'job attempted';

/** For tests that end a process at a step. */
const steps = channel('communication-api:job');

interface Lane {
  readonly kind: string;
  readonly lane: string;
  readonly handler: JobHandler;
}

/** Jobs that a process does at once. */
const MAX_RUNNING = 200;
/** Due lanes per look. The rest comes with the next look. */
const LANES_AT_ONCE = 500;
/** How long after `add` to look: by then its transaction has usually ended. If it has not, the next look finds the job. */
const WAKE_MS = 20;
/** The only process of a database knows when its next job is due. This bound is for clocks that jump. */
const MAX_SLEEP_MS = 60_000;
/** How long to wait after an attempt that threw. */
const RETRY_MS = 60_000;
/** How long to wait before the next look after the database was away. */
const AWAY_MS = 1_000;
/** How much longer than its deadline an attempt belongs to its process: for the last statement, and for other clocks. */
const GRACE_MS = 10_000;
/** How long running jobs may take after `close`. */
const CLOSE_MS = 5_000;

/**
 * Jobs in the database. A job is a row, which is deleted when the job is done. An attempt takes the row until its
 * deadline is over, so the job of a process that died is taken by another one.
 */
export class Queue {
  readonly #handlers = new Map<string, JobHandler>();
  /** Lanes that may have due jobs. Each look, and each end of a job, adds to them. */
  readonly #waiting = new Map<string, Lane>();
  readonly #running = new Set<Promise<void>>();
  readonly #runningPerLane = new Map<string, number>();
  readonly #closing = new AbortController();
  readonly #sleepMs: number;
  #state: 'made' | 'started' | 'closed' = 'made';
  #timer: NodeJS.Timeout | undefined;
  #timerEndsAt = 0;
  /** Whether the database did not answer the last time. */
  #isAway = false;
  #looking: Promise<unknown> = Promise.resolve();

  /**
   * @param pollMs how often to look for jobs that other processes have added, in milliseconds. Default: 60,000, since this
   * is the only process
   */
  constructor(
    private readonly db: Database,
    private readonly clock: Clock,
    private readonly log: Pick<Logger, 'warn' | 'error'>,
    { pollMs = MAX_SLEEP_MS }: { readonly pollMs?: number | undefined } = {},
  ) {
    this.#sleepMs = pollMs;
  }

  /** Says who does the jobs of a kind. Jobs without a handler wait: a newer version of the service may have one. */
  handle(kind: string, handler: JobHandler): void {
    this.#handlers.set(kind, handler);
  }

  /**
   * Adds jobs, in the transaction of what they are about. A job that waits already is due now, and its attempts are
   * counted anew; one that is being done stays as it is.
   * @param db the transaction, or a statement that was begun with `with`: its parts are executed with this one
   */
  async add(applicationId: string, jobs: readonly NewJob[], db: Pick<Database, 'insertInto'>): Promise<void> {
    if (jobs.length === 0) return;
    const now = new Date(this.clock());
    await db
      .insertInto('jobs')
      .values(
        jobs.map(({ kind, lane, subject }) => ({
          ...{ kind, lane, subject, application_id: applicationId },
          ...{ next_at: now, created_at: now },
        })),
      )
      .onConflict((conflict) =>
        conflict
          .columns(['kind', 'lane', 'subject'])
          .doUpdateSet({ next_at: now, attempt: 0 })
          .where('jobs.is_taken', '=', false),
      )
      .execute();
    this.#lookIn(WAKE_MS);
  }

  /** Deletes the jobs of a lane that are not being done at this moment. */
  async clear(applicationId: string, kind: string, lane: string, db: Database): Promise<void> {
    await db
      .deleteFrom('jobs')
      .where('application_id', '=', applicationId)
      .where('kind', '=', kind)
      .where('lane', '=', lane)
      .where('is_taken', '=', false)
      .execute();
  }

  /** A job, unless it is done. */
  async find(applicationId: string, { kind, lane, subject }: NewJob): Promise<PendingJob | undefined> {
    return this.db
      .selectFrom('jobs')
      .select(['attempt', 'is_taken as isTaken', 'next_at as nextAt'])
      .where('application_id', '=', applicationId)
      .where('kind', '=', kind)
      .where('lane', '=', lane)
      .where('subject', '=', subject)
      .executeTakeFirst();
  }

  /** How many jobs of a lane are not done. */
  async count(applicationId: string, kind: string, lane: string): Promise<number> {
    const { count } = await this.db
      .selectFrom('jobs')
      .select(({ fn }) => fn.countAll<string>().as('count'))
      .where('application_id', '=', applicationId)
      .where('kind', '=', kind)
      .where('lane', '=', lane)
      .executeTakeFirstOrThrow();
    return Number(count);
  }

  /** How many jobs of all applications are not done, and for how long the one that waits longest has been due. */
  async pending(): Promise<readonly { readonly kind: string; readonly jobs: number; readonly overdueMs: number }[]> {
    const now = this.clock();
    const rows = await this.db
      .selectFrom('jobs')
      .select(({ fn, eb }) => [
        'kind',
        fn.countAll<string>().as('jobs'),
        // The end of an attempt is not when a job is due, unless its process has died.
        fn
          .min('next_at')
          .filterWhere(eb.or([eb('is_taken', '=', false), eb('next_at', '<=', new Date(now))]))
          .as('due'),
      ])
      .groupBy('kind')
      .execute();
    const kinds = new Set([...this.#handlers.keys(), ...rows.map(({ kind }) => kind)]);
    return [...kinds].map((kind) => {
      const row = rows.find((each) => each.kind === kind);
      const due: Date | null = row?.due ?? null;
      return { kind, jobs: Number(row?.jobs ?? 0), overdueMs: due === null ? 0 : Math.max(0, now - due.getTime()) };
    });
  }

  start(): void {
    this.#state = 'started';
    this.#lookIn(0);
  }

  /** Begins no more jobs. Running ones have some seconds to end; then they are aborted, and the next process does them. */
  async close(): Promise<void> {
    this.#state = 'closed';
    clearTimeout(this.#timer);
    await this.#looking;
    const abort = setTimeout(() => this.#closing.abort(), CLOSE_MS);
    await this.#ended();
    clearTimeout(abort);
  }

  /** Does every job that is due, and waits for the end of each. */
  async runDue(): Promise<void> {
    await this.#look();
    await this.#ended();
  }

  async #ended(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
  }

  /** Looks for due jobs after this time, or earlier. */
  #lookIn(ms: number): void {
    const endsAt = performance.now() + ms;
    if (this.#state !== 'started' || (this.#timer !== undefined && this.#timerEndsAt <= endsAt)) return;
    clearTimeout(this.#timer);
    this.#timerEndsAt = endsAt;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#looking = this.#looking.then(() => this.#look()).then((sleepMs) => this.#lookIn(sleepMs));
    }, ms);
    this.#timer.unref();
  }

  /** Begins what is due. @returns when to look again */
  async #look(): Promise<number> {
    try {
      const lanes = await this.#lanes();
      const now = this.clock();
      let sleepMs = this.#sleepMs;
      for (const { kind, lane, next_at } of lanes) {
        const handler = this.#handlers.get(kind);
        if (handler === undefined) continue;
        const waitMs = next_at.getTime() - now;
        if (waitMs > 0) sleepMs = Math.min(sleepMs, waitMs);
        else this.#waiting.set(keyOf(kind, lane), { kind, lane, handler });
      }
      this.#fill();
      if (this.#isAway) this.log.warn('the queue of jobs is read again');
      this.#isAway = false;
      return sleepMs;
    } catch (error) {
      // Once per outage: it is tried again every second.
      if (!this.#isAway) this.log.warn({ err: error }, 'the queue of jobs cannot be read');
      this.#isAway = true;
      return AWAY_MS;
    }
  }

  /** Begins jobs of the waiting lanes in turn, as long as there is room. */
  #fill(): void {
    for (const [key, lane] of this.#waiting) {
      if (this.#running.size >= MAX_RUNNING || this.#state === 'closed') return;
      this.#waiting.delete(key);
      const count = this.#runningPerLane.get(key) ?? 0;
      // The end of one of its jobs makes the lane wait again.
      if (count >= lane.handler.perLane) continue;
      this.#runningPerLane.set(key, count + 1);
      const running = this.#serve(key, lane).finally(() => {
        this.#running.delete(running);
        const left = (this.#runningPerLane.get(key) ?? 1) - 1;
        if (left > 0) this.#runningPerLane.set(key, left);
        else this.#runningPerLane.delete(key);
        this.#fill();
      });
      this.#running.add(running);
    }
  }

  /** Does one job of a lane, if one is due. */
  async #serve(key: string, lane: Lane): Promise<void> {
    try {
      const job = await this.#take(lane);
      if (job === undefined) return;
      // The lane may have more, and its turn comes after the other lanes.
      this.#waiting.set(key, lane);
      this.#fill();
      atStep('job taken', job);
      const outcome = await this.#attempt(job, lane.handler);
      atStep('job attempted', job);
      await this.#settle(job, outcome);
      this.#waiting.set(key, lane);
    } catch (error) {
      this.log.warn({ err: error, job: lane.kind }, 'a job could not be taken or settled');
      this.#lookIn(AWAY_MS);
    }
  }

  async #attempt(job: Job, handler: JobHandler): Promise<JobOutcome> {
    const signal = AbortSignal.any([this.#closing.signal, AbortSignal.timeout(handler.deadlineMs)]);
    let abort = (): void => undefined;
    // Also if the handler ignores the signal.
    const aborted = new Promise<never>((_, reject) => {
      abort = () => reject(signal.reason);
      signal.addEventListener('abort', abort, { once: true });
    });
    try {
      return await Promise.race([handler.run(job, signal), aborted]);
    } catch (error) {
      if (this.#closing.signal.aborted) return { retryInMs: 0 };
      const { kind, subject, attempt } = job;
      this.log.error({ err: error, job: kind, subject, attempt }, 'a job has failed');
      return { retryInMs: RETRY_MS };
    } finally {
      signal.removeEventListener('abort', abort);
    }
  }

  /**
   * For each lane, when its next job is due; the earliest lane comes first, of all applications. It steps through the
   * index from lane to lane, so its time does not depend on how many jobs a lane has.
   */
  async #lanes() {
    return this.db
      .withRecursive('lanes', (db) =>
        db
          .selectFrom((from) =>
            from
              .selectFrom('jobs')
              .select(['kind', 'lane', 'next_at'])
              .orderBy('kind')
              .orderBy('lane')
              .orderBy('next_at')
              .limit(1)
              .as('first'),
          )
          .select(['first.kind', 'first.lane', 'first.next_at'])
          .unionAll((union) =>
            union
              .selectFrom('lanes')
              .innerJoinLateral(
                (from) =>
                  from
                    .selectFrom('jobs')
                    .select(['jobs.kind', 'jobs.lane', 'jobs.next_at'])
                    .where(sql<boolean>`(jobs.kind, jobs.lane) > (lanes.kind, lanes.lane)`)
                    .orderBy('jobs.kind')
                    .orderBy('jobs.lane')
                    .orderBy('jobs.next_at')
                    .limit(1)
                    .as('next'),
                (join) => join.onTrue(),
              )
              .select(['next.kind', 'next.lane', 'next.next_at']),
          ),
      )
      .selectFrom('lanes')
      .selectAll()
      .orderBy('next_at')
      .limit(LANES_AT_ONCE)
      .execute();
  }

  /** Takes a due job of a lane, unless other processes have taken all of them. */
  async #take({ kind, lane, handler }: Lane): Promise<Job | undefined> {
    const now = this.clock();
    const row = await this.db
      .updateTable('jobs')
      .set(({ eb }) => ({
        is_taken: true,
        attempt: eb('attempt', '+', 1),
        next_at: new Date(now + handler.deadlineMs + GRACE_MS),
      }))
      .where('kind', '=', kind)
      .where('lane', '=', lane)
      .where('subject', '=', (db) =>
        db
          .selectFrom('jobs')
          .select('subject')
          .where('kind', '=', kind)
          .where('lane', '=', lane)
          .where('next_at', '<=', new Date(now))
          .orderBy('next_at')
          .limit(1)
          .forUpdate()
          .skipLocked(),
      )
      .returning(['application_id', 'subject', 'attempt', 'created_at'])
      .executeTakeFirst();
    if (row === undefined) return undefined;
    const { subject, application_id: applicationId, attempt, created_at: addedAt } = row;
    return { kind, lane, subject, applicationId, attempt, addedAt };
  }

  /** Changes nothing if another process has taken the job since, because this one was too slow. */
  async #settle({ applicationId, kind, lane, subject, attempt }: Job, outcome: JobOutcome): Promise<void> {
    const isThisAttempt = { application_id: applicationId, kind, lane, subject, attempt };
    if (outcome === 'done' || 'doneWith' in outcome) {
      await (outcome === 'done' ? this.db : outcome.doneWith(this.db))
        .deleteFrom('jobs')
        .where((row) => row.and(isThisAttempt))
        .execute();
      return;
    }
    await this.db
      .updateTable('jobs')
      .set({ is_taken: false, next_at: new Date(this.clock() + outcome.retryInMs) })
      .where((row) => row.and(isThisAttempt))
      .execute();
    this.#lookIn(outcome.retryInMs);
  }
}

const atStep = (step: JobStep, { kind }: Job): void => {
  if (steps.hasSubscribers) steps.publish({ step, kind });
};

const keyOf = (kind: string, lane: string): string => `${kind} ${lane}`;
