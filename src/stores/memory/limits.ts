import type { Clock } from '../../core/clock.ts';
import { charge, Decision, evaluate, FITS, type WindowStatus, windowStatus } from '../../core/decision.ts';
import { ClockError, StoreFullError } from '../../core/errors.ts';
import type { Plan } from '../../core/plan.ts';
import type { ResetTarget, SynchronousLimitStore } from '../../core/ports.ts';
import { isOver, SLOTS_PER_WINDOW, takeBack } from '../../core/window.ts';
import { blank, COPIED, copy } from './counters.ts';
import type { RecordName } from './names.ts';
import { fillOptions, type MemoryStoreOptions } from './options.ts';
import { indexOfWindow, type Part, partOf, partsOf } from './part.ts';
import { Records, type RecordView } from './records.ts';
import { HEADER, NOWHERE } from './slab.ts';

export type { MemoryStoreOptions } from './options.ts';

/** What an operator sees of a memory store. */
export interface MemoryStoreStats {
  /** Pairs held now, those included that are over and wait for a sweep. */
  readonly keys: number;
  readonly maxKeys: number;
  /** New pairs refused since the start because every key held had an active window (S18). */
  readonly refused: number;
  /** Pairs that were over and have left, since the start. */
  readonly swept: number;
}

/** A bounded, synchronous {@link SynchronousLimitStore} in this process's memory. */
export interface MemoryStore extends SynchronousLimitStore {
  /** Its figures, as they are now. */
  stats(): MemoryStoreStats;
}

/** Calls between two sweeps. Sweeping rides on traffic: no timer, and a share of the work too small to be felt. */
const CALLS_PER_SWEEP = 256;
/** Accounts looked at in a sweep, and for each window that begins: twice what can have been added, so what is over shrinks. */
const ACCOUNTS_PER_SWEEP = 2;
/** Accounts looked at when the store is full, before a newcomer is refused. */
const ACCOUNTS_WHEN_FULL = 256;

/** The route of the record that holds All methods where the account's routes share it. */
const SHARED = Symbol('every route');

/**
 * Counters in memory: one record of plain numbers per (account, route), whatever the number of windows.
 * @throws OptionError
 */
export function createMemoryStore(options: MemoryStoreOptions = {}): MemoryStore {
  const { maxKeys, clock } = fillOptions(options);
  return new Store(maxKeys, clock);
}

class Store implements MemoryStore {
  readonly synchronous = true;
  readonly #maxKeys: number;
  readonly #clock: Clock;
  readonly #partsOfPlan = new WeakMap<Plan, readonly Part[]>();
  #records: Records;
  #lastPlan: Plan | undefined;
  /** The only part of the last plan, where it stands with the route, as most do. */
  #lastPart: Part | undefined;
  #calls = 0;
  #refused = 0;
  #sweptBefore = 0;

  constructor(maxKeys: number, clock: Clock) {
    this.#maxKeys = maxKeys;
    this.#clock = clock;
    this.#records = new Records(maxKeys);
  }

  consume(account: string, route: string, plan: Plan, cost: number): Decision {
    const now = this.#clock.now();
    if (!Number.isSafeInteger(now)) throw new ClockError(now);
    if (++this.#calls % CALLS_PER_SWEEP === 0) this.#records.sweep(ACCOUNTS_PER_SWEEP, now);
    const part = plan === this.#lastPlan ? this.#lastPart : this.#onlyPart(plan);
    const address = part === undefined ? NOWHERE : this.#records.find(account, route, part);
    if (address === NOWHERE) return this.#consumeParts(account, route, plan, cost, now);
    const { slab } = this.#records;
    const counters = slab.chunk(address);
    const at = slab.offset(address) + HEADER;
    const rejectedBy = evaluate(plan, counters, at, cost, now);
    if (rejectedBy === FITS && charge(plan, counters, at, cost, now)) this.#records.sweep(ACCOUNTS_PER_SWEEP, now);
    const checked = rejectedBy === FITS ? plan.windows.length : rejectedBy + 1;
    // A literal is the cheapest copy, and only here, where the compiler then sees the whole check as one function (docs/performance.md).
    // What stands behind the windows comes along and is never read.
    const copied: ArrayLike<number> =
      checked > COPIED
        ? copy(counters, at, checked)
        : [
            counters[at] as number,
            counters[at + 1] as number,
            counters[at + 2] as number,
            counters[at + 3] as number,
            counters[at + 4] as number,
            counters[at + 5] as number,
            counters[at + 6] as number,
            counters[at + 7] as number,
          ];
    return new Decision(account, route, plan, cost, now, rejectedBy, copied);
  }

  peek(account: string, route: string, plan: Plan): readonly WindowStatus[] {
    const now = this.#now();
    return this.#parts(plan).flatMap((part) => {
      const { windows, counters } = this.#view(account, route, part);
      return part.windows.map((window) =>
        windowStatus(window, counters, indexOfWindow(windows, window) * SLOTS_PER_WINDOW, now, 0),
      );
    });
  }

  refund(decision: Decision): boolean {
    const now = this.#now();
    if (!decision.takeRefund()) return false;
    const { account, route, plan, cost, trace } = decision;
    let refunded = false;
    for (const part of this.#parts(plan)) {
      const { windows, counters } = this.#view(account, route, part);
      for (const window of trace.slice(part.from, part.to)) {
        const at = indexOfWindow(windows, window) * SLOTS_PER_WINDOW;
        const { durationMs, startedAt } = window;
        if (startedAt !== undefined && takeBack(counters, at, durationMs, startedAt, cost, now)) refunded = true;
      }
    }
    return refunded;
  }

  reset({ account, route }: ResetTarget): void {
    if (account !== undefined && route !== undefined) this.#records.remove(account, route);
    else if (account !== undefined) this.#records.removeWhere(account, () => true);
    else if (route !== undefined) this.#records.retireRoute(route);
    else {
      this.#sweptBefore += this.#records.swept;
      this.#records = new Records(this.#maxKeys);
    }
  }

  stats(): MemoryStoreStats {
    return {
      keys: this.#records.size,
      maxKeys: this.#maxKeys,
      refused: this.#refused,
      swept: this.#sweptBefore + this.#records.swept,
    };
  }

  /** Where a record is missing or has other windows, or where there are two: all are charged, or none. */
  #consumeParts(account: string, route: string, plan: Plan, cost: number, now: number): Decision {
    const parts = this.#parts(plan);
    const { slab } = this.#records;
    const locate = (part: Part) => this.#locate(account, nameOf(part, route), part, now);
    let addresses = parts.map(locate);
    const counters = blank(plan);
    for (const [i, { from, to }] of parts.entries()) slab.load(addresses[i] as number, counters, from, to);
    const rejectedBy = evaluate(plan, counters, 0, cost, now);
    // A rejection must not create a record (S5).
    if (rejectedBy === FITS) {
      if (!this.#hasRoom(addresses)) {
        this.#records.sweep(ACCOUNTS_WHEN_FULL, now);
        // It may have taken a record of this very account that was over.
        addresses = parts.map(locate);
        if (!this.#hasRoom(addresses)) {
          this.#refused++;
          throw new StoreFullError(this.#maxKeys);
        }
      }
      const started = charge(plan, counters, 0, cost, now);
      for (const [i, part] of parts.entries()) {
        let address = addresses[i] as number;
        if (address === NOWHERE) address = this.#records.add(account, nameOf(part, route), part);
        slab.save(address, counters, part.from, part.to);
      }
      if (started) this.#records.sweep(ACCOUNTS_PER_SWEEP, now);
    }
    return new Decision(account, route, plan, cost, now, rejectedBy, counters);
  }

  #view(account: string, route: string, part: Part): RecordView {
    return this.#records.view(this.#records.findAny(account, nameOf(part, route)));
  }

  #locate(account: string, name: RecordName, part: Part, now: number): number {
    const address = this.#records.findAny(account, name);
    if (address === NOWHERE || this.#records.holds(address, part)) return address;
    return this.#layOutAnew(account, name, address, part, now);
  }

  /**
   * Address of a record after it was made to begin with the part's windows (S10). Behind them stay those windows of an earlier plan that are not
   * over: should that plan come back (two gateways during a deployment disagree for minutes), its counts still hold.
   */
  #layOutAnew(account: string, name: RecordName, before: number, part: Part, now: number): number {
    const { windows, ...view } = this.#records.view(before);
    const counters = view.counters.slice();
    const leftover = windows.filter(
      (window, i) =>
        indexOfWindow(part.windows, window) === -1 &&
        !isOver(counters[i * SLOTS_PER_WINDOW] as number, window.durationMs, now),
    );
    const wanted = partOf([...part.windows, ...leftover]);
    if (this.#records.holds(before, wanted)) return before;
    this.#records.remove(account, name);
    const address = this.#records.add(account, name, wanted);
    const moved = this.#records.view(address).counters;
    for (const [i, window] of wanted.windows.entries()) {
      const from = indexOfWindow(windows, window) * SLOTS_PER_WINDOW;
      if (from >= 0) moved.set(counters.subarray(from, from + SLOTS_PER_WINDOW), i * SLOTS_PER_WINDOW);
    }
    return address;
  }

  /** Whether the records that are missing fit (S18). */
  #hasRoom(addresses: readonly number[]): boolean {
    return this.#records.size + addresses.filter((address) => address === NOWHERE).length <= this.#maxKeys;
  }

  #onlyPart(plan: Plan): Part | undefined {
    const [first, second] = this.#parts(plan);
    this.#lastPlan = plan;
    this.#lastPart = second === undefined && !first?.shared ? first : undefined;
    return this.#lastPart;
  }

  #parts(plan: Plan): readonly Part[] {
    let parts = this.#partsOfPlan.get(plan);
    if (parts === undefined) {
      parts = partsOf(plan);
      this.#partsOfPlan.set(plan, parts);
    }
    return parts;
  }

  #now(): number {
    const now = this.#clock.now();
    if (!Number.isSafeInteger(now)) throw new ClockError(now);
    return now;
  }
}

function nameOf({ shared }: Part, route: string): RecordName {
  return shared ? SHARED : route;
}
