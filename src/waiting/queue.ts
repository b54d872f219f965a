import type { Decision } from '../core/decision.ts';
import type { Timers } from '../core/timers.ts';
import { REQUESTS } from '../core/unit.ts';
import type { WindowSet } from '../core/window-set.ts';
import type { Cooldown } from '../limits/cooldown.ts';
import { groupAccount } from '../limits/groups.ts';
import type { Limiter, LimitRequest } from '../limits/ports.ts';
import { NeverFitsError, WaitTooLongError } from './errors.ts';
import { Pause, roomAfter, slotsAfter } from './pause.ts';
import type { Releases, Waiter } from './releases.ts';

/** One call of `acquire` that waits for its decision. */
export interface Job {
  readonly request: LimitRequest;
  /** Per unit. */
  readonly costs: ReadonlyMap<string, number>;
  /** The windows that the job must fit, as they were when it came. */
  readonly windowSet: WindowSet;
  readonly maxWaitMs: number;
  /** When `maxWaitMs` is over, on the worker's clock. */
  readonly deadline: number;
  resolve(decision: Decision): void;
  reject(reason: unknown): void;
}

/** Whether a decision for one job could as well be one for the other. Both are of the same account and route. */
export function areAlike(one: Job, other: Job): boolean {
  const haveEqualCosts =
    one.costs.size === other.costs.size && [...one.costs].every(([unit, cost]) => other.costs.get(unit) === cost);
  return haveEqualCosts && one.windowSet === other.windowSet;
}

/** Most jobs that ask at once, so that a store gets no more checks at a time. */
const MAX_ASKING = 100;

/** The answers to several jobs that asked at once. */
interface Answers {
  readonly accepted: readonly Decision[];
  readonly rejected: readonly Decision[];
  readonly failures: readonly unknown[];
}

/**
 * The jobs of one account, lane and route, and of the same groups, first in, first out. Only the first job asks. If its
 * decision shows room for more, as many of the following jobs as fit ask at once, which a store can decide in one call. If
 * a window is full, no job asks until it is over; if as many requests run as may run, until one has ended.
 */
export class JobQueue implements Waiter {
  readonly #jobs = new Set<Job>();
  readonly #limiter: Limiter;
  readonly #cooldown: Cooldown | undefined;
  readonly #timers: Timers;
  readonly #releases: Releases;
  /** The accounts and groups whose releases end a pause. */
  readonly #watched = new Set<string>();
  /** Whether a request in flight ended since the last job asked. */
  #isReleased = false;
  /** The sum of the costs of all jobs, in requests. */
  #cost = 0;
  /** The window set of all jobs; undefined if there are several. */
  #windowSet: WindowSet | undefined;
  #pause: Pause | undefined;
  #endPause: (() => void) | undefined;

  /** @param route of all its jobs */
  constructor(
    readonly route: string,
    limiter: Limiter,
    timers: Timers,
    cooldown: Cooldown | undefined,
    releases: Releases,
  ) {
    this.#limiter = limiter;
    this.#cooldown = cooldown;
    this.#timers = timers;
    this.#releases = releases;
  }

  released(): void {
    this.#isReleased = true;
    if (this.#pause?.endsWithRelease) this.#endPause?.();
  }

  /** Adds a job as the last one. Rejects it at once if it is known to wait too long. */
  add(job: Job): void {
    this.#windowSet = this.#jobs.size === 0 || this.#windowSet === job.windowSet ? job.windowSet : undefined;
    this.#jobs.add(job);
    this.#cost += costOf(job);
    this.#rejectIfTooLate(job, this.#pause?.earliest(this.#cost, this.#windowSet));
  }

  /** Removes a job that gives up. Returns whether it was still waiting. */
  remove(job: Job): boolean {
    const wasFirst = this.#first === job;
    if (!this.#jobs.delete(job)) return false;
    this.#cost -= costOf(job);
    // A cheaper job, or one with other limits, may fit before the pause is over.
    if (wasFirst && (this.#first === undefined || !areAlike(this.#first, job))) this.resume();
    return true;
  }

  /** Ends the pause: the first job asks now. */
  resume(): void {
    this.#pause = undefined;
    this.#endPause?.();
  }

  /** Rejects every job. */
  clear(reason: () => unknown): void {
    for (const job of this.#jobs) if (this.remove(job)) job.reject(reason());
  }

  /**
   * Serves the jobs until none is left.
   * @param onEmpty called then, before another job can be added
   */
  async serve(onEmpty: () => void): Promise<void> {
    let asking = 1;
    let wasServed = false;
    for (let first = this.#first; first !== undefined; first = this.#first) {
      // In the last place: a queue that has waited longer asks first.
      if (first.windowSet.inFlight !== undefined) this.#watch(first.request.account);
      this.#isReleased = false;
      const answers = await this.#ask(first, asking);
      const receivedAt = this.#timers.now();
      await this.#deliver(first, answers);
      asking = 1;
      wasServed ||= answers.accepted.length > 0;
      const next = this.#first;
      const known = answers.rejected.at(-1) ?? fullest(answers.accepted, first.costs);
      // Limits of another cost or window set have to be asked for.
      if (next === undefined || known === undefined || !areAlike(next, first)) continue;
      // A store on a server uses its own clock. Both are rounded down.
      this.#pause = Pause.after(known, next.costs, receivedAt, this.#limiter.synchronous ? 0 : 1, wasServed);
      if (this.#pause === undefined) {
        const room = Math.min(roomAfter(known, next.costs), slotsAfter(known));
        asking = Math.max(1, Math.min(MAX_ASKING, room));
      } else {
        if (this.#pause.endsWithRelease) this.#watch(rejectingAccount(known, next.request));
        await this.#wait(this.#pause);
        wasServed = false;
      }
    }
    for (const account of this.#watched) this.#releases.leave(account, this);
    this.#watched.clear();
    onEmpty();
  }

  #watch(account: string): void {
    this.#watched.add(account);
    this.#releases.wait(account, this);
  }

  get #first(): Job | undefined {
    for (const job of this.#jobs) return job;
    return undefined;
  }

  /** Asks for the first job, and for up to `most` if the following ones are like it. */
  async #ask(first: Job, most: number): Promise<Answers> {
    const asked: Promise<Decision>[] = [];
    for (const job of this.#jobs) {
      if (asked.length >= most || !areAlike(job, first)) break;
      asked.push((this.#cooldown ?? this.#limiter).consume(job.request));
    }
    const settled = await Promise.allSettled(asked);
    const decisions = settled.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
    return {
      accepted: decisions.filter(({ accepted }) => accepted),
      rejected: decisions.filter(({ accepted }) => !accepted),
      failures: settled.flatMap((each) => (each.status === 'rejected' ? [each.reason] : [])),
    };
  }

  /**
   * Gives the answers to the first jobs, in their order. A job can have given up while it asked: then the next one that
   * is like it gets its decision. If there is none, the charge is refunded.
   */
  async #deliver(asked: Job, { accepted, rejected, failures }: Answers): Promise<void> {
    const unused = accepted.filter((decision) => !this.#settleFirst(asked, (job) => job.resolve(decision)));
    for (const failure of failures) this.#settleFirst(asked, (job) => job.reject(failure));
    for (const { impossible, shown: { max = 0, unit } = {} } of rejected)
      if (impossible)
        this.#settleFirst(asked, (job) =>
          job.reject(new NeverFitsError(job.costs.get(unit ?? REQUESTS) ?? 0, max, unit)),
        );
    // A charge that cannot be refunded is over with its window.
    await Promise.allSettled(
      unused.flatMap((decision) => [this.#limiter.refund(decision), this.#limiter.release(decision)]),
    );
  }

  /** Settles and removes the first job if it is like `asked`. */
  #settleFirst(asked: Job, settle: (job: Job) => void): boolean {
    const job = this.#first;
    if (job === undefined || !areAlike(job, asked)) return false;
    this.remove(job);
    settle(job);
    return true;
  }

  async #wait(pause: Pause): Promise<void> {
    let cost = 0;
    for (const job of this.#jobs) {
      cost += costOf(job);
      if (this.#rejectIfTooLate(job, pause.earliest(cost, this.#windowSet))) cost -= costOf(job);
      // The first job was rejected, and the next one may fit now.
      if (this.#pause !== pause) return;
    }
    // A job whose time is over then must not wait for the next question.
    const deadlines = pause.endsWithRelease ? [...this.#jobs].map(({ deadline }) => deadline) : [];
    const asksAt = deadlines.reduce((first, deadline) => Math.min(first, deadline), pause.asksAt);
    if (pause.endsWithRelease && this.#isReleased) this.#pause = undefined;
    // A timer may be early, and cannot be set for more than 24.8 days.
    for (let ms = asksAt - this.#timers.now(); ms > 0 && this.#pause === pause; ) {
      await new Promise<void>((resolve) => {
        // Callers wait for their jobs, so the process must not exit before.
        const cancel = this.#timers.after(ms, resolve, false);
        this.#endPause = () => {
          cancel();
          resolve();
        };
      });
      if (pause.endsWithRelease && this.#isReleased) break;
      ms = asksAt - this.#timers.now();
    }
    this.#pause = undefined;
    this.#endPause = undefined;
  }

  /** @param earliest when the job can be accepted at the earliest; undefined if that is not known */
  #rejectIfTooLate(job: Job, earliest: number | undefined): boolean {
    if (earliest === undefined || earliest <= job.deadline) return false;
    this.remove(job);
    job.reject(new WaitTooLongError(earliest - this.#timers.now(), job.maxWaitMs));
    return true;
  }
}

/** The decision with the least room left: of those that were made at once, the last one. */
function fullest(decisions: readonly Decision[], costs: Job['costs']): Decision | undefined {
  return decisions.reduce<Decision | undefined>(
    (least, decision) =>
      least === undefined || roomAfter(decision, costs) < roomAfter(least, costs) ? decision : least,
    undefined,
  );
}

/** The account or the group whose requests in flight rejected a request. */
function rejectingAccount({ rejectedBy }: Decision, { account, groups = {} }: LimitRequest): string {
  const group = rejectedBy === undefined ? undefined : groups[rejectedBy];
  return rejectedBy === undefined || group === undefined ? account : groupAccount(rejectedBy, group);
}

/** @throws NeverFitsError if a window of the window set can never fit the cost */
export function checkFits({ windows }: WindowSet, costs: Job['costs']): void {
  for (const { max, unit } of windows) {
    const cost = costs.get(unit ?? REQUESTS) ?? 0;
    if (cost > max) throw new NeverFitsError(cost, max, unit);
  }
}

function costOf({ costs }: Job): number {
  return costs.get(REQUESTS) ?? 0;
}
