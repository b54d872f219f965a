import { monotonicClock } from '../../core/clock.ts';
import type { WindowSet } from '../../core/window-set.ts';
import { type Check, type CheckRequest, requestsOf } from '../shared/check-batcher.ts';

/** Equal requests that wait for one call. */
export interface QueuedCheck<Result> extends Check<Result> {
  readonly windowSet: WindowSet;
  readonly cost: number;
  /** When the first of its requests arrived, on this process's clock. */
  readonly addedAt: number;
}

/** Options of {@link CheckQueue}. */
export interface CheckQueueOptions<Result> {
  /** Most calls that are under way at the same time, each on a connection of its own. */
  readonly maxCalls: number;
  /** Longest wait for the turn of a check, in milliseconds. */
  readonly maxWaitMs: number;
  /** Sends checks in one call. Must not reject. */
  readonly send: (checks: readonly QueuedCheck<Result>[]) => Promise<void>;
  /** Called with checks whose turn did not come in time. */
  readonly giveUp: (checks: readonly QueuedCheck<Result>[]) => void;
}

/** Most checks per call: its locks are free again only when all of them are decided. */
const MAX_CHECKS = 64;
/** Fewer checks are not worth a separate call. */
const MIN_CHECKS = 8;
/** Most requests per check: they are an integer of PostgreSQL. */
const MAX_REQUESTS = 2_147_483_647;
/** Checks that are looked at per call. Those that others must come before are left out. */
const MAX_LOOKED = 1_024;

/**
 * Collects checks while calls are under way, and sends them together. A counter is in one call at a time: on the server
 * the second call would wait for the first, and occupy a connection meanwhile. Requests that touch the same counters
 * keep their order.
 */
export class CheckQueue<Result> {
  readonly #options: CheckQueueOptions<Result>;
  readonly #waiting = new Set<QueuedCheck<Result>>();
  /** The last waiting check of each key. */
  readonly #last = new Map<string, QueuedCheck<Result>>();
  /** Keys of the checks that are under way. */
  readonly #busy = new Set<string>();
  #calls = 0;
  #isScheduled = false;

  constructor(options: CheckQueueOptions<Result>) {
    this.#options = options;
  }

  /** Resolves with the result. */
  add({ keys, account, route, windowSet, cost, call, lease }: CheckRequest): Promise<Result> {
    const last = this.#last.get(keys[0] as string);
    const isEqual =
      last?.windowSet === windowSet &&
      last.cost === cost &&
      this.#isLastOfAll(keys, last) &&
      (lease === undefined || requestsOf(last) + lease.requests <= MAX_REQUESTS);
    const check = isEqual
      ? last
      : { keys, account, route, windowSet, cost, addedAt: monotonicClock.now(), waiting: [] };
    if (!isEqual) {
      this.#waiting.add(check);
      for (const key of keys) this.#last.set(key, check);
      this.#schedule();
    }
    return new Promise((resolve, reject) => check.waiting.push({ call, lease, resolve, reject }));
  }

  #isLastOfAll(keys: readonly string[], check: QueuedCheck<Result>): boolean {
    return check.keys.length === keys.length && keys.every((key) => this.#last.get(key) === check);
  }

  /** Sends at the end of the turn, so that the requests of a turn are together. */
  #schedule(): void {
    if (this.#isScheduled || this.#calls >= this.#options.maxCalls) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#sendAll();
    });
  }

  #sendAll(): void {
    const oldest = monotonicClock.now() - this.#options.maxWaitMs;
    const late: QueuedCheck<Result>[] = [];
    for (const check of this.#waiting) {
      if (check.addedAt >= oldest) break;
      late.push(check);
    }
    for (const check of late) this.#remove(check);
    if (late.length > 0) this.#options.giveUp(late);
    while (this.#calls < this.#options.maxCalls && this.#waiting.size > 0) {
      const checks = this.#take();
      if (checks.length === 0) return;
      void this.#send(checks);
    }
  }

  async #send(checks: readonly QueuedCheck<Result>[]): Promise<void> {
    this.#calls++;
    for (const { keys } of checks) for (const key of keys) this.#busy.add(key);
    await this.#options.send(checks);
    for (const { keys } of checks) for (const key of keys) this.#busy.delete(key);
    this.#calls--;
    if (this.#waiting.size > 0) this.#schedule();
  }

  /** The checks of the next call: an equal share of those that wait, and none whose counters are in use. */
  #take(): QueuedCheck<Result>[] {
    const share = Math.ceil(this.#waiting.size / (this.#options.maxCalls - this.#calls));
    const most = Math.min(MAX_CHECKS, Math.max(MIN_CHECKS, share));
    const taken: QueuedCheck<Result>[] = [];
    const used = new Set<string>();
    let looked = 0;
    for (const check of this.#waiting) {
      if (taken.length >= most || looked++ >= MAX_LOOKED) break;
      if (!check.keys.some((key) => used.has(key) || this.#busy.has(key))) taken.push(check);
      for (const key of check.keys) used.add(key);
    }
    for (const check of taken) this.#remove(check);
    return taken;
  }

  #remove(check: QueuedCheck<Result>): void {
    this.#waiting.delete(check);
    for (const key of check.keys) if (this.#last.get(key) === check) this.#last.delete(key);
  }
}
