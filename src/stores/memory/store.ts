import type { Clock } from '../../core/clock.ts';
import { charge, Decision, evaluate, FITS, type WindowStatus, windowStatus } from '../../core/decision.ts';
import { ClockError, StoreFullError } from '../../core/errors.ts';
import type { Plan, PlanWindow } from '../../core/plan.ts';
import type { ResetTarget, SynchronousLimitStore } from '../../core/ports.ts';
import { type Counters, isOver, NEVER, SLOTS_PER_WINDOW, takeBack } from '../../core/window.ts';
import { blank, copy } from './counters.ts';
import type { RecordName } from './names.ts';
import { fillOptions, type MemoryStoreOptions } from './options.ts';
import { isSameWindow, type Part, type Parts, partOf, partsOf } from './part.ts';
import { Records } from './records.ts';
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
  readonly #partsOfPlan = new WeakMap<Plan, Parts>();
  #records: Records;
  #lastPlan: Plan | undefined;
  #lastParts: Parts | undefined;
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
    const { own, shared } = plan === this.#lastPlan ? (this.#lastParts as Parts) : this.#parts(plan);
    if (shared !== undefined) return this.#consumeShared(account, route, plan, cost, now, own, shared);
    let address = this.#records.find(account, route, own);
    if (address === NOWHERE) {
      address = this.#layOutAnew(account, route, own, now);
      if (address === NOWHERE) return this.#consumeFirst(account, route, plan, cost, now, own);
    }
    const { slab } = this.#records;
    const counters = slab.chunk(address);
    const at = slab.offset(address) + HEADER;
    const rejectedBy = evaluate(plan, counters, at, cost, now);
    if (rejectedBy === FITS && charge(plan, counters, at, cost, now)) this.#records.sweep(ACCOUNTS_PER_SWEEP, now);
    const checked = rejectedBy === FITS ? own.to : rejectedBy + 1;
    return new Decision(account, route, plan, cost, now, rejectedBy, copy(counters, at, checked));
  }

  peek(account: string, route: string, plan: Plan): readonly WindowStatus[] {
    const now = this.#now();
    const { own, shared } = this.#parts(plan);
    return [
      ...this.#peekPart(account, route, own, now),
      ...(shared ? this.#peekPart(account, SHARED, shared, now) : []),
    ];
  }

  refund(decision: Decision): boolean {
    const now = this.#now();
    if (!decision.takeRefund()) return false;
    const { own, shared } = this.#parts(decision.plan);
    const fromOwn = this.#refundPart(decision, decision.route, own, now);
    const fromShared = shared !== undefined && this.#refundPart(decision, SHARED, shared, now);
    return fromOwn || fromShared;
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

  /** A pair without a record: nothing is counted yet, and a rejection must not create one (S5). */
  #consumeFirst(account: string, route: string, plan: Plan, cost: number, now: number, own: Part): Decision {
    const counters = blank(plan);
    const rejectedBy = evaluate(plan, counters, 0, cost, now);
    if (rejectedBy === FITS && plan.windows.length > 0) {
      this.#makeRoom(() => 1, now);
      charge(plan, counters, 0, cost, now);
      this.#fill(this.#records.add(account, route, own), counters, 0, own);
      this.#records.sweep(ACCOUNTS_PER_SWEEP, now);
    }
    return new Decision(account, route, plan, cost, now, rejectedBy, counters);
  }

  /** All methods shared by the account's routes: two records, charged together or not at all. */
  #consumeShared(
    account: string,
    route: string,
    plan: Plan,
    cost: number,
    now: number,
    own: Part,
    shared: Part,
  ): Decision {
    const counters = blank(plan);
    const places = [
      { name: route, part: own, address: this.#locate(account, route, own, now) },
      { name: SHARED, part: shared, address: this.#locate(account, SHARED, shared, now) },
    ].filter(({ part }) => part.windows.length > 0);
    for (const { part, address } of places) if (address !== NOWHERE) this.#collect(address, counters, part);
    const rejectedBy = evaluate(plan, counters, 0, cost, now);
    if (rejectedBy === FITS) {
      // Counted anew after a sweep, which may take a record of this very account that was over.
      const missing = () =>
        places.filter(({ name, part }) => this.#locate(account, name, part, now) === NOWHERE).length;
      this.#makeRoom(missing, now);
      const started = charge(plan, counters, 0, cost, now);
      for (const { name, part } of places) {
        // Found anew: making room may have swept a record that was over.
        const address = this.#locate(account, name, part, now);
        this.#fill(address === NOWHERE ? this.#records.add(account, name, part) : address, counters, part.from, part);
      }
      if (started) this.#records.sweep(ACCOUNTS_PER_SWEEP, now);
    }
    return new Decision(account, route, plan, cost, now, rejectedBy, counters);
  }

  #locate(account: string, route: RecordName, part: Part, now: number): number {
    const address = this.#records.find(account, route, part);
    return address === NOWHERE ? this.#layOutAnew(account, route, part, now) : address;
  }

  /**
   * Address of the pair's record after it was made to begin with the part's windows, or NOWHERE where there is none (S10).
   * Behind them stay those windows of an earlier plan that are not over: should that plan come back (two gateways during a
   * deployment disagree for minutes), its counts still hold.
   */
  #layOutAnew(account: string, route: RecordName, part: Part, now: number): number {
    const address = this.#records.findAny(account, route);
    if (address === NOWHERE) return NOWHERE;
    const before = this.#records.windows(address);
    const { slab } = this.#records;
    const first = slab.offset(address) + HEADER;
    const old = slab.chunk(address).slice(first, first + before.length * SLOTS_PER_WINDOW);
    const leftover = before.filter(
      (window, i) =>
        !part.windows.some((other) => isSameWindow(window, other)) &&
        !isOver(old[i * SLOTS_PER_WINDOW] as number, window.durationMs, now),
    );
    const wanted = partOf([...part.windows, ...leftover]);
    if (this.#records.find(account, route, wanted) === address) return address;
    this.#records.check(wanted);
    this.#records.remove(account, route);
    const moved = this.#records.add(account, route, wanted);
    const counters = slab.chunk(moved);
    for (const [i, window] of wanted.windows.entries()) {
      const from = before.findIndex((other) => isSameWindow(window, other));
      if (from === -1) continue;
      const to = slab.offset(moved) + HEADER + i * SLOTS_PER_WINDOW;
      counters.set(old.subarray(from * SLOTS_PER_WINDOW, (from + 1) * SLOTS_PER_WINDOW), to);
    }
    return moved;
  }

  #peekPart(account: string, route: RecordName, part: Part, now: number): WindowStatus[] {
    const address = this.#records.findAny(account, route);
    return part.windows.map((window) => windowStatus(window, this.#countersOf(address, window), 0, now, 0));
  }

  #refundPart(decision: Decision, route: RecordName, part: Part, now: number): boolean {
    const address = this.#records.findAny(decision.account, route);
    if (address === NOWHERE) return false;
    const before = this.#records.windows(address);
    const { slab } = this.#records;
    let refunded = false;
    for (const { limit, durationMs, startedAt } of decision.trace.slice(part.from, part.to)) {
      const index = before.findIndex((window) => isSameWindow(window, { limit, durationMs }));
      if (index === -1 || startedAt === undefined) continue;
      const at = slab.offset(address) + HEADER + index * SLOTS_PER_WINDOW;
      if (takeBack(slab.chunk(address), at, durationMs, startedAt, decision.cost, now)) refunded = true;
    }
    return refunded;
  }

  /** The window's two numbers in a record, wherever they stand in it. */
  #countersOf(address: number, window: PlanWindow): ArrayLike<number> {
    if (address === NOWHERE) return [NEVER, 0];
    const index = this.#records.windows(address).findIndex((other) => isSameWindow(window, other));
    if (index === -1) return [NEVER, 0];
    const at = this.#records.slab.offset(address) + HEADER + index * SLOTS_PER_WINDOW;
    return this.#records.slab.chunk(address).slice(at, at + SLOTS_PER_WINDOW);
  }

  #collect(address: number, counters: Counters, part: Part): void {
    const { slab } = this.#records;
    const at = slab.offset(address) + HEADER;
    for (let i = 0; i < part.windows.length * SLOTS_PER_WINDOW; i++) {
      counters[part.from * SLOTS_PER_WINDOW + i] = slab.chunk(address)[at + i] as number;
    }
  }

  #fill(address: number, counters: Counters, fromWindow: number, part: Part): void {
    const { slab } = this.#records;
    const at = slab.offset(address) + HEADER;
    for (let i = 0; i < part.windows.length * SLOTS_PER_WINDOW; i++) {
      slab.chunk(address)[at + i] = counters[fromWindow * SLOTS_PER_WINDOW + i] as number;
    }
  }

  /** Throws unless the keys that are needed fit (S18). */
  #makeRoom(needed: () => number, now: number): void {
    if (this.#records.size + needed() <= this.#maxKeys) return;
    this.#records.sweep(ACCOUNTS_WHEN_FULL, now);
    if (this.#records.size + needed() <= this.#maxKeys) return;
    this.#refused++;
    throw new StoreFullError(this.#maxKeys);
  }

  #parts(plan: Plan): Parts {
    let parts = this.#partsOfPlan.get(plan);
    if (parts === undefined) {
      parts = partsOf(plan);
      this.#partsOfPlan.set(plan, parts);
    }
    this.#lastPlan = plan;
    this.#lastParts = parts;
    return parts;
  }

  #now(): number {
    const now = this.#clock.now();
    if (!Number.isSafeInteger(now)) throw new ClockError(now);
    return now;
  }
}
