import { channel } from 'node:diagnostics_channel';
import type { Logger } from 'pino';
import type { Database } from '../db/database.ts';
import type { Clock } from '../domain/clock.ts';
import type { DeleteWithJobs, EndedJob, Job, JobOutcome } from './job.ts';
import { type Backlog, JobTable, LANES_AT_ONCE } from './job-table.ts';
import { type ApplicationLane, type Bounds, Turns } from './turns.ts';

/** Does the jobs of one kind. */
export interface JobHandler extends Bounds {
  /** After this time `signal` aborts with a `TimeoutError`, and the attempt fails. */
  readonly deadlineMs: number;
  /** Due jobs of a lane that are done one after the other within a deadline, if there is time. Default: 1. */
  readonly together?: number;
  /** Default: only the jobs are deleted. */
  readonly deleteWith?: DeleteWithJobs;
  /** One attempt. If it throws, the error is logged, and the job is tried again in a minute. */
  run(job: Job, signal: AbortSignal): Promise<JobOutcome>;
}

/** A moment in the life of a job: its row was taken, or its attempt ended and its row is not yet changed. */
export type JobStep = 'job taken' | 'job attempted';

/** For tests that end a process at a step. */
const steps = channel('communication-api:job');

/** A kind of jobs that this process does. */
interface HandledKind {
  readonly kind: string;
  readonly handler: JobHandler;
  readonly turns: Turns;
}

/** How long after `add` to look: by then its transaction has usually ended. If not, the next look finds the job. */
const WAKE_MS = 20;
/** When to look for jobs that are probably not there. */
const UNLIKELY_MS = 1_000;
/** The only process of a database knows when its next job is due. This bound is for clocks that jump. */
const MAX_SLEEP_MS = 60_000;
/** How long to wait after an attempt that threw. */
const RETRY_MS = 60_000;
/** How long to wait before the next look after the database was away. */
const AWAY_MS = 1_000;
/**
 * How much longer than its deadline an attempt belongs to its process: for the last statement, and for other clocks.
 */
const GRACE_MS = 10_000;
/** How long running jobs may take after `close`. */
const CLOSE_MS = 5_000;

/**
 * Runs the jobs of the database. If a process dies, another process takes its job after the deadline of the attempt.
 */
export class Queue {
  readonly table: JobTable;
  readonly #kinds = new Map<string, HandledKind>();
  readonly #running = new Set<Promise<void>>();
  readonly #closing = new AbortController();
  readonly #sleepMs: number;
  #state: 'made' | 'started' | 'closed' = 'made';
  #timer: NodeJS.Timeout | undefined;
  #timerEndsAt = 0;
  /** Whether the database did not answer the last time. */
  #isAway = false;
  #looking: Promise<unknown> = Promise.resolve();

  /**
   * @param pollMs how often to look for jobs that other processes added, in milliseconds. Default: 60,000, because this
   * is the only process
   */
  constructor(
    db: Database,
    private readonly clock: Clock,
    private readonly log: Pick<Logger, 'warn' | 'error'>,
    { pollMs = MAX_SLEEP_MS }: { readonly pollMs?: number | undefined } = {},
  ) {
    this.#sleepMs = pollMs;
    this.table = new JobTable(db, clock);
  }

  /** Sets the handler of a kind. Jobs without a handler wait: a newer version of the service may handle them. */
  handle(kind: string, handler: JobHandler): void {
    this.#kinds.set(kind, { kind, handler, turns: new Turns(handler) });
  }

  /** Adds jobs as {@link JobTable.add} does, and does them soon. */
  async add(...jobs: Parameters<JobTable['add']>): Promise<void> {
    await this.table.add(...jobs);
    this.wake();
  }

  /** Looks for jobs soon. @param isLikely whether there are some: if not, the look need not come at once */
  wake(isLikely = true): void {
    this.#lookIn(isLikely ? WAKE_MS : UNLIKELY_MS);
  }

  /** The jobs that are not done, per kind with jobs or a handler. */
  async backlogs(): Promise<readonly Backlog[]> {
    const backlogs = await this.table.backlogs();
    const idle = [...this.#kinds.keys()].filter((kind) => !backlogs.some((each) => each.kind === kind));
    return [...backlogs, ...idle.map((kind) => ({ kind, jobs: 0, overdueMs: 0 }))];
  }

  start(): void {
    this.#state = 'started';
    this.#lookIn(0);
  }

  /**
   * Begins no more jobs. Running jobs may end within some seconds, then they are aborted. The next process runs them.
   */
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

  /** Begins due jobs. @returns when to look again */
  async #look(): Promise<number> {
    try {
      const waiting = [...this.#kinds.values()].flatMap(({ kind, turns }) =>
        turns.waiting().map((lane) => ({ kind, lane })),
      );
      const lanes = await this.table.lanes([...this.#kinds.keys()], waiting);
      const now = this.clock();
      const last = lanes[LANES_AT_ONCE - 1];
      // More lanes may be due than were read.
      let sleepMs = last !== undefined && last.next_at.getTime() <= now ? WAKE_MS : this.#sleepMs;
      for (const { kind, lane, application_id: applicationId, next_at } of lanes) {
        const waitMs = next_at.getTime() - now;
        if (waitMs > 0) sleepMs = Math.min(sleepMs, waitMs);
        else this.#kinds.get(kind)?.turns.wait({ applicationId, lane });
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
    for (const each of this.#kinds.values()) {
      while (this.#state !== 'closed') {
        const lane = each.turns.next();
        if (lane === undefined) break;
        const running = this.#serve(each, lane).finally(() => {
          this.#running.delete(running);
          each.turns.end(lane);
          this.#fill();
        });
        this.#running.add(running);
      }
    }
  }

  /** Does jobs of a lane, if some are due. */
  async #serve({ kind, handler, turns }: HandledKind, { applicationId, lane }: ApplicationLane): Promise<void> {
    const { deadlineMs, together = 1, deleteWith } = handler;
    try {
      const jobs = await this.table.take({ kind, lane }, deadlineMs + GRACE_MS, together);
      // The lane may contain more jobs.
      if (jobs.length === together) {
        turns.wait({ applicationId, lane });
        this.#fill();
      }
      const ended = await this.#attempts(jobs, handler);
      await this.table.settle(ended, deleteWith);
      for (const { outcome } of ended)
        if (typeof outcome === 'object') this.#lookIn(outcome.retryInMs);
        else if (outcome === 'not begun') this.#lookIn(WAKE_MS);
      if (jobs.length === together) return;
      // A look that found the lane due did not see its later jobs.
      const dueInMs = await this.table.dueIn(applicationId, { kind, lane });
      // Another transaction may have locked a due job.
      if (dueInMs !== undefined) this.#lookIn(Math.max(WAKE_MS, dueInMs));
    } catch (error) {
      this.log.warn({ err: error, job: kind }, 'a job could not be taken or settled');
      this.#lookIn(AWAY_MS);
    }
  }

  /** One attempt of each job, as long as at least half of the time is left. */
  async #attempts(jobs: readonly Job[], handler: JobHandler): Promise<readonly EndedJob[]> {
    const endsAt = performance.now() + handler.deadlineMs;
    const ended: EndedJob[] = [];
    for (const job of jobs) {
      const leftMs = endsAt - performance.now();
      if (ended.length > 0 && (leftMs < handler.deadlineMs / 2 || this.#state === 'closed')) {
        ended.push({ job, outcome: 'not begun' });
        continue;
      }
      atStep('job taken', job);
      ended.push({ job, outcome: await this.#attempt(job, handler, leftMs) });
      atStep('job attempted', job);
    }
    return ended;
  }

  async #attempt(job: Job, handler: JobHandler, leftMs: number): Promise<JobOutcome> {
    const signal = AbortSignal.any([this.#closing.signal, AbortSignal.timeout(Math.ceil(leftMs))]);
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
      this.log.error({ err: error, job: kind, subject, attempt }, 'a job failed');
      return { retryInMs: RETRY_MS };
    } finally {
      signal.removeEventListener('abort', abort);
    }
  }
}

const atStep = (step: JobStep, { kind }: Job): void => {
  if (steps.hasSubscribers) steps.publish({ step, kind });
};
