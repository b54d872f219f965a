import { ClosedError, OptionError } from '../base/errors.ts';
import { isPromise, type MaybePromise } from '../base/maybe-promise.ts';
import { checkMethods, checkOptions } from '../base/options.ts';
import type { BlockTarget } from '../core/block.ts';
import type { Decision } from '../core/decision.ts';
import { createSystemTimers, type Timers } from '../core/timers.ts';
import { EVERY_ROUTE } from '../core/window-set.ts';
import { Cooldown, type CooldownReport, type CooldownSubject } from '../limits/cooldown.ts';
import { type CooldownOptions, cooldownSettings, fieldsOf, type ProviderResponse } from '../limits/cooldown-options.ts';
import { copyOfRequest, costsOf } from '../limits/costs.ts';
import { groupOf } from '../limits/groups.ts';
import { partsOf, windowSetOf } from '../limits/limiter-parts.ts';
import type { Limiter, LimitRequest } from '../limits/ports.ts';
import { QueueFullError } from './errors.ts';
import { checkFits, type Job, JobQueue } from './queue.ts';
import { Releases } from './releases.ts';

/** Options of {@link createJobWorker}. */
export interface JobWorkerOptions {
  /**
   * Most jobs that wait at a time, of all accounts and routes together: a positive integer. No account may have more
   * jobs waiting in a lane than there is room left, so one account alone can fill half of it, or with one lane, two thirds.
   * @default 1_000
   */
  readonly maxQueue?: number | undefined;
  /**
   * How long `cooldown()` pauses an account, and what it pauses (S30).
   * @default the account on the route, as long as the provider asks for
   */
  readonly cooldown?: CooldownOptions | undefined;
  /**
   * Clock and timers, for tests.
   * @default the platform's
   */
  readonly timers?: Timers | undefined;
}

/** Options of {@link JobWorker.acquire}. */
export interface AcquireOptions {
  /**
   * Longest wait for room in the windows, in milliseconds. The time of the store's own answers is not part of it: the
   * store sets a deadline for them. With 0 the job never waits.
   * @default no bound
   */
  readonly maxWaitMs?: number | undefined;
  /** Ends the wait if it is aborted. A charge that is on its way is refunded. */
  readonly signal?: AbortSignal | undefined;
}

/** Waits for room in the windows of a limiter, in place of a rejection. */
export interface JobWorker {
  /** Jobs that wait now, those that ask the store included. */
  readonly waiting: number;
  /**
   * Resolves with an accepted decision, as soon as the job fits its windows, and may run beside the others. In one
   * process, the jobs of one account, lane and route, and of the same groups, are served in the order of their calls.
   * There is no order across processes.
   *
   * It rejects with the reason of `signal` if that is aborted, and with the store's errors if its failure policy is
   * to refuse. Other policies decide, and the decision is marked `degraded`.
   * @throws WaitTooLongError as soon as it is known that the wait would be longer than `maxWaitMs`; QueueFullError;
   * NeverFitsError if the cost is more than the max of a window; ClosedError; SubjectError, UnknownPlanError,
   * UnknownLaneError, CostError, LimitError, OptionError. Nothing was charged then
   */
  acquire(request: LimitRequest, options?: AcquireOptions): Promise<Decision>;
  /**
   * Reports the provider's answer to a job. A 429, or a 503 with `retry-after`, pauses the account on this route, in every
   * process that shares the store: jobs wait, and gates answer 429. Afterwards the first job goes alone, and the others
   * follow when an answer that is no refusal is reported, or after 10 seconds. So report every answer (S30).
   * @param request the decision of `acquire`, so that a late answer to an earlier job changes nothing; or its account and
   * route
   * @param response of `fetch`, or an object with `status` and `headers`
   * @returns what changed; undefined if nothing did
   * @throws (rejects with) OptionError (also if the store cannot do this), SubjectError, ClosedError, and the store's errors
   */
  cooldown(request: CooldownSubject, response: ProviderResponse): Promise<CooldownReport | undefined>;
  /**
   * Acquires, runs a job, and releases its slot when the job has ended, also if it failed (S29). With `acquire` alone, a
   * job of limits with `inFlight` calls `limiter.release(decision)` itself.
   * @returns what the job returned
   * @throws as `acquire`, and what the job throws
   */
  run<Result>(
    request: LimitRequest,
    job: (decision: Decision) => MaybePromise<Result>,
    options?: AcquireOptions,
  ): Promise<Result>;
  /**
   * Rejects every waiting job with `ClosedError`, and refunds charges that are under way. Later calls reject. The
   * limiter stays open: close it afterwards.
   */
  close(): Promise<void>;
}

/**
 * Creates a worker: for jobs and clients that would rather wait than be rejected. Any number of processes can share the
 * windows of one store.
 * @example
 * ```ts
 * const worker = createJobWorker(limiter, { maxQueue: 1_000 });
 * await worker.acquire({ account: 'acc_1', route: 'POST /api/v1/emails' }, { maxWaitMs: 30_000 });
 * ```
 * @throws OptionError
 */
export function createJobWorker(limiter: Limiter, options: JobWorkerOptions = {}): JobWorker {
  if (typeof limiter?.consume !== 'function' || typeof limiter.windowSet !== 'function')
    throw new OptionError('limiter', limiter, 'must be what createLimiter() returned');
  checkOptions(options, ['maxQueue', 'cooldown', 'timers'], 'options');
  const { maxQueue = 1_000, timers = createSystemTimers() } = options;
  checkMethods('timers', timers, ['now', 'after'], ', as a clock with timers does');
  if (!Number.isSafeInteger(maxQueue) || maxQueue < 1)
    throw new OptionError('options.maxQueue', maxQueue, 'must be a positive integer');
  const canCool = partsOf(limiter)?.store.cooldown !== undefined;
  const settings = cooldownSettings(options.cooldown ?? canCool);
  return new LimiterWorker(limiter, maxQueue, timers, settings && new Cooldown(limiter, settings, timers));
}

const NO_COOLDOWN = 'needs a limiter of createLimiter(), and a store with cooldown()';

class LimiterWorker implements JobWorker {
  readonly #limiter: Limiter;
  readonly #maxQueue: number;
  readonly #timers: Timers;
  /** Only queues with jobs, by account, lane, route and groups. */
  readonly #queues = new Map<string, JobQueue>();
  readonly #serving = new Set<Promise<void>>();
  /** Jobs that wait, by account and lane. */
  readonly #waitingOf = new Map<string, number>();
  #waiting = 0;
  readonly #cooldown: Cooldown | undefined;
  readonly #releases: Releases;
  #closed = false;

  constructor(limiter: Limiter, maxQueue: number, timers: Timers, cooldown: Cooldown | undefined) {
    this.#cooldown = cooldown;
    this.#limiter = limiter;
    this.#maxQueue = maxQueue;
    this.#timers = timers;
    this.#releases = new Releases(() => partsOf(limiter)?.slots());
  }

  get waiting(): number {
    return this.#waiting;
  }

  async acquire(given: LimitRequest, options: AcquireOptions = {}): Promise<Decision> {
    if (this.#closed) throw new ClosedError('the worker');
    const { maxWaitMs, signal } = checkAcquireOptions(options);
    const resolving = windowSetOf(this.#limiter, given);
    // A copy, because the caller may change its object while the job waits.
    const request = copyOfRequest(given);
    // No wait if there is no need, because jobs are served in the order of their calls.
    const windowSet = isPromise(resolving) ? await resolving : resolving;
    if (this.#closed) throw new ClosedError('the worker');
    const costs = costsOf(request.cost ?? 1, partsOf(this.#limiter)?.windowSets.units ?? []);
    checkFits(windowSet, costs);
    signal?.throwIfAborted();
    const owner = ownerOf(request);
    const ofOwner = this.#waitingOf.get(owner) ?? 0;
    // However many jobs of some accounts and lanes wait, another account finds room, and another lane does.
    if (ofOwner >= this.#maxQueue - this.#waiting) throw new QueueFullError(this.#maxQueue, ofOwner);
    let giveUp: (() => void) | undefined;
    this.#count(owner, 1);
    try {
      return await new Promise<Decision>((resolve, reject) => {
        const deadline = this.#timers.now() + maxWaitMs;
        const job: Job = { request, costs, windowSet, maxWaitMs, deadline, resolve, reject };
        const queue = this.#add(job);
        giveUp = () => {
          if (queue.remove(job)) reject(signal?.reason);
        };
        signal?.addEventListener('abort', giveUp);
      });
    } finally {
      this.#count(owner, -1);
      if (giveUp !== undefined) signal?.removeEventListener('abort', giveUp);
    }
  }

  async cooldown(request: CooldownSubject, response: ProviderResponse): Promise<CooldownReport | undefined> {
    if (this.#closed) throw new ClosedError('the worker');
    if (this.#cooldown === undefined) throw new OptionError('cooldown', undefined, NO_COOLDOWN);
    const report = await this.#cooldown.report(Object(request), response?.status, fieldsOf(response));
    if (report?.state === 'ended') this.#resume(report.target);
    return report;
  }

  async run<Result>(
    request: LimitRequest,
    job: (decision: Decision) => MaybePromise<Result>,
    options?: AcquireOptions,
  ): Promise<Result> {
    if (typeof job !== 'function') throw new OptionError('job', job, 'must be a function');
    const decision = await this.acquire(request, options);
    try {
      return await job(decision);
    } finally {
      await this.#limiter.release(decision);
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const queue of this.#queues.values()) queue.clear(() => new ClosedError('the worker'));
    await Promise.all(this.#serving);
    this.#releases.close();
  }

  #count(owner: string, jobs: 1 | -1): void {
    this.#waiting += jobs;
    const ofOwner = (this.#waitingOf.get(owner) ?? 0) + jobs;
    if (ofOwner === 0) this.#waitingOf.delete(owner);
    else this.#waitingOf.set(owner, ofOwner);
  }

  #resume({ account, route }: BlockTarget): void {
    const owner = groupOf(account) === undefined ? nameOf(account) : '';
    for (const [name, queue] of this.#queues)
      if (name.startsWith(owner) && (route === undefined || route === queue.route)) queue.resume();
  }

  /**
   * Adds a job to the queue of its account, lane, route and groups. A queue exists, and is served, as long as it contains
   * jobs. Lanes do not share a queue: jobs of a lane that is used up would stop jobs that still fit. Nor do groups.
   */
  #add(job: Job): JobQueue {
    const { route = EVERY_ROUTE, groups } = job.request;
    const name = `${ownerOf(job.request)}${nameOf(route)}${JSON.stringify(groups) ?? ''}`;
    const existing = this.#queues.get(name);
    if (existing !== undefined) {
      existing.add(job);
      return existing;
    }
    const queue = new JobQueue(route, this.#limiter, this.#timers, this.#cooldown, this.#releases);
    this.#queues.set(name, queue);
    queue.add(job);
    const serving = queue.serve(() => this.#queues.delete(name)).finally(() => this.#serving.delete(serving));
    this.#serving.add(serving);
    return queue;
  }
}

/** A text for an account and a lane, which no other two have. */
function ownerOf({ account, lane }: LimitRequest): string {
  return `${nameOf(account)}${lane === undefined ? '-' : nameOf(lane)}`;
}

/** The length in front determines the end of the name. */
function nameOf(name: string): string {
  return `${name.length}:${name}`;
}

function checkAcquireOptions(options: AcquireOptions): { maxWaitMs: number; signal: AbortSignal | undefined } {
  checkOptions(options, ['maxWaitMs', 'signal'], 'options');
  const { maxWaitMs = Number.POSITIVE_INFINITY, signal } = options;
  if (typeof maxWaitMs !== 'number' || !(maxWaitMs >= 0))
    throw new OptionError('options.maxWaitMs', maxWaitMs, 'must be a number of milliseconds, 0 or more');
  if (signal !== undefined && typeof signal?.throwIfAborted !== 'function')
    throw new OptionError('options.signal', signal, 'must be an AbortSignal');
  return { maxWaitMs, signal };
}
