import { channel } from 'node:diagnostics_channel';
import type { Logger } from 'pino';
import type { Database } from '../db/database.ts';
import type { Clock } from '../domain/clock.ts';
import type { Job, JobOutcome } from './job.ts';
import { type Backlog, JobTable, type Lane } from './job-table.ts';

/** Does the jobs of one kind. */
export interface JobHandler {
  /** How many jobs of a lane this process does at once. */
  readonly perLane: number;
  /** After this time `signal` aborts with a `TimeoutError`, and the attempt fails. */
  readonly deadlineMs: number;
  /** One attempt. If it throws, the error is logged, and the job is tried again in a minute. */
  run(job: Job, signal: AbortSignal): Promise<JobOutcome>;
}

/** A moment in the life of a job: its row was taken, or its attempt ended and its row is not yet changed. */
export type JobStep = 'job taken' | 'job attempted';

/** For tests that end a process at a step. */
const steps = channel('communication-api:job');

interface HandledLane extends Lane {
  readonly handler: JobHandler;
}

/** Jobs that a process does at once. */
const MAX_RUNNING = 200;
/** How long after `add` to look: by then its transaction has usually ended. If not, the next look finds the job. */
const WAKE_MS = 20;
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
  readonly #handlers = new Map<string, JobHandler>();
  /** Lanes that may contain due jobs. Each look, and each end of a job, adds to them. */
  readonly #waiting = new Map<string, HandledLane>();
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
    this.#handlers.set(kind, handler);
  }

  /** Adds jobs as {@link JobTable.add} does, and does them soon. */
  async add(...jobs: Parameters<JobTable['add']>): Promise<void> {
    await this.table.add(...jobs);
    this.#lookIn(WAKE_MS);
  }

  /** The jobs that are not done, per kind with jobs or a handler. */
  async backlogs(): Promise<readonly Backlog[]> {
    const backlogs = await this.table.backlogs();
    const idle = [...this.#handlers.keys()].filter((kind) => !backlogs.some((each) => each.kind === kind));
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
      const lanes = await this.table.lanes();
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
  async #serve(key: string, lane: HandledLane): Promise<void> {
    try {
      const job = await this.table.take(lane, lane.handler.deadlineMs + GRACE_MS);
      if (job === undefined) return;
      // The lane may contain more jobs, and its turn comes after the other lanes.
      this.#waiting.set(key, lane);
      this.#fill();
      atStep('job taken', job);
      const outcome = await this.#attempt(job, lane.handler);
      atStep('job attempted', job);
      await this.table.settle(job, outcome);
      if (typeof outcome === 'object' && 'retryInMs' in outcome) this.#lookIn(outcome.retryInMs);
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

const keyOf = (kind: string, lane: string): string => `${kind} ${lane}`;
