import { ClockError, StoreFullError } from '../../base/errors.ts';
import type { Block, BlockTarget, FreshStart } from '../../core/block.ts';
import { BlockedDecision } from '../../core/blocked-decision.ts';
import type { Clock } from '../../core/clock.ts';
import type { CooldownCommand, CooldownReply } from '../../core/cooldown.ts';
import {
  charge,
  countFitting,
  Decision,
  evaluate,
  FITS,
  type WindowStatus,
  windowStatus,
} from '../../core/decision.ts';
import type { LeaseGrant, ResetTarget, SynchronousLimitStore } from '../../core/ports.ts';
import type { Slot, SlotReply } from '../../core/slot.ts';
import { addBeyond, type Counters, isOver, SLOTS_PER_WINDOW, settleWindow } from '../../core/window.ts';
import type { WindowSet } from '../../core/window-set.ts';
import { Blocks } from './blocks.ts';
import { Cooldowns } from './cooldowns.ts';
import { copyCounters, emptyCounters, WINDOWS_PER_LITERAL } from './counters.ts';
import type { RecordName } from './names.ts';
import { fillOptions, type MemoryStoreOptions, readClock } from './options.ts';
import { Records, type RecordView } from './records.ts';
import { SettledReceipts } from './settled-receipts.ts';
import { HEADER, NOWHERE } from './slab.ts';
import { SlotTable } from './slots.ts';
import { indexOfWindow, partOf, partsOf, type WindowSetPart } from './window-set-part.ts';

export type { MemoryStoreOptions } from './options.ts';

/** Figures of a memory store, for operators. */
export interface MemoryStoreStats {
  /** Current number of (account, route) pairs, including those that are over but not swept yet. */
  readonly keys: number;
  readonly maxKeys: number;
  /** New pairs refused since the start, because the store was full and the pairs that it checked were active (S18). */
  readonly refused: number;
  /** Pairs that were over and have been swept since the start. */
  readonly swept: number;
}

/** A bounded, synchronous {@link SynchronousLimitStore} in this process's memory. */
export interface MemoryStore extends SynchronousLimitStore {
  undo(decision: Decision): boolean;
  settleOnce(decision: Decision, cost: number, receipt: string, until?: number): boolean;
  lease(account: string, route: string, windowSet: WindowSet, cost: number, requests: number): LeaseGrant;
  charge(account: string, route: string, windowSet: WindowSet, cost: number): readonly WindowStatus[];
  holdSlot(slot: Slot, leaseMs: number): SlotReply;
  releaseSlot(slot: Slot): void;
  block(target: BlockTarget, block: Block, fresh?: FreshStart): void;
  unblock(target: BlockTarget): void;
  blocked(target: BlockTarget): Block | undefined;
  cooldown(target: BlockTarget, command: CooldownCommand): CooldownReply;
  /** Returns at once, because there is no server. */
  ready(): void;
  /** Returns the current figures. */
  stats(): MemoryStoreStats;
}

/** Calls between two sweeps. Calls do the sweeping in small steps, so that no timer is needed and no call is slow. */
const CALLS_PER_SWEEP = 256;
/** Accounts checked per sweep, and per window that starts: twice what can have been added, so the backlog shrinks. */
const ACCOUNTS_PER_SWEEP = 2;
/** Accounts checked when the store is full, before a new pair is refused. */
const ACCOUNTS_WHEN_FULL = 256;

/** The route of the record for All methods, if the account's routes share that limit. */
const ALL_ROUTES = Symbol('every route');

/**
 * Creates a store in memory. It keeps one record of plain numbers per (account, route), whatever the number of windows.
 * @throws OptionError
 */
export function createMemoryStore(options: MemoryStoreOptions = {}): MemoryStore {
  const { maxKeys, clock } = fillOptions(options);
  return new MemoryLimitStore(maxKeys, clock);
}

/**
 * The same for a program without clients that wait, such as a simulation. Its calls are quicker, because no account is
 * hashed for a shard. But one of them takes up to 200 ms when the map of a million accounts grows.
 */
export function createUnshardedStore(options: MemoryStoreOptions): MemoryStore {
  const { maxKeys, clock } = fillOptions(options);
  return new MemoryLimitStore(maxKeys, clock, 1);
}

/** Whether this store counts for one process alone. */
export function isMemoryStore(store: object): boolean {
  return store instanceof MemoryLimitStore;
}

class MemoryLimitStore implements MemoryStore {
  readonly synchronous = true;
  readonly #maxKeys: number;
  readonly #keysForShards: number;
  readonly #clock: Clock;
  readonly #partsOfWindowSet = new WeakMap<WindowSet, readonly WindowSetPart[]>();
  #records: Records;
  /** Undefined until the first block, which saves a look-up per request. */
  #blocks: Blocks | undefined;
  /** Undefined until the first cooldown. */
  #cooldowns: Cooldowns | undefined;
  /** Undefined until the first receipt. */
  #receipts: SettledReceipts | undefined;
  /** Undefined until the first request in flight. */
  #slots: SlotTable | undefined;
  #lastWindowSet: WindowSet | undefined;
  /** The part of the last window set, if it is the only one and the route's own, which is usual. */
  #lastPart: WindowSetPart | undefined;
  #calls = 0;
  #refused = 0;
  #sweptBefore = 0;

  /** @param keysForShards the number of keys for which the map of the accounts is divided into shards */
  constructor(maxKeys: number, clock: Clock, keysForShards = maxKeys) {
    this.#maxKeys = maxKeys;
    this.#keysForShards = keysForShards;
    this.#clock = clock;
    this.#records = new Records(keysForShards);
  }

  consume(account: string, route: string, windowSet: WindowSet, cost: number): Decision {
    const now = this.#clock.now();
    if (!Number.isSafeInteger(now)) throw new ClockError(now);
    if (++this.#calls % CALLS_PER_SWEEP === 0) this.#records.sweep(ACCOUNTS_PER_SWEEP, now);
    if (this.#blocks !== undefined && windowSet.windows.length > 0) {
      const block = this.#blocks.find({ account, route }, now);
      if (block !== undefined) return new BlockedDecision(account, route, windowSet, cost, now, block);
    }
    const part = windowSet === this.#lastWindowSet ? this.#lastPart : this.#onlyPart(windowSet);
    const address = part === undefined ? NOWHERE : this.#records.find(account, route, part);
    if (address === NOWHERE) return this.#consumeRecords(account, route, windowSet, cost, now);
    const { slab } = this.#records;
    const counters = slab.chunk(address);
    const at = slab.offset(address) + HEADER;
    const rejectedBy = evaluate(windowSet, counters, at, cost, now);
    if (rejectedBy === FITS && charge(windowSet, counters, at, cost, now)) this.#records.sweep(ACCOUNTS_PER_SWEEP, now);
    const checked = rejectedBy === FITS ? windowSet.windows.length : rejectedBy + 1;
    // A literal is the cheapest copy, and only inline, because the compiler then sees the whole check as one function
    // (docs/performance.md). It also copies the numbers after the last window, which are never read.
    const copied: ArrayLike<number> =
      checked > WINDOWS_PER_LITERAL
        ? copyCounters(counters, at, checked)
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
    return new Decision(account, route, windowSet, cost, now, rejectedBy, copied);
  }

  peek(account: string, route: string, windowSet: WindowSet): readonly WindowStatus[] {
    const now = readClock(this.#clock);
    return this.#parts(windowSet).flatMap((part) => {
      const { windows, counters } = this.#view(account, route, part);
      return part.windows.map((window) =>
        windowStatus(window, counters, indexOfWindow(windows, window) * SLOTS_PER_WINDOW, now, 0),
      );
    });
  }

  settle(decision: Decision, cost: number): boolean {
    return this.#settle(decision, cost, readClock(this.#clock)) !== undefined;
  }

  undo(decision: Decision): boolean {
    return this.#settle(decision, 0, readClock(this.#clock), decision.decidedAt) !== undefined;
  }

  settleOnce(decision: Decision, cost: number, receipt: string, until?: number): boolean {
    const now = readClock(this.#clock);
    if (until !== undefined && now > until) return false;
    this.#receipts ??= new SettledReceipts(this.#maxKeys);
    if (this.#receipts.has(receipt, now)) return false;
    this.#receipts.makeRoom(now);
    const end = this.#settle(decision, cost, now);
    if (end !== undefined) this.#receipts.add(receipt, until === undefined ? end : until + 1);
    return end !== undefined;
  }

  lease(account: string, route: string, windowSet: WindowSet, cost: number, requests: number): LeaseGrant {
    const decision = this.consume(account, route, windowSet, cost);
    if (!decision.accepted) return { decision, granted: 0 };
    const now = decision.decidedAt;
    const { counters, addresses } = this.#load(account, route, windowSet, now);
    const further = countFitting(windowSet, counters, 0, cost, requests - 1, now);
    if (further > 0 && windowSet.windows.length > 0) {
      charge(windowSet, counters, 0, further * cost, now);
      this.#save(account, route, windowSet, counters, addresses, now);
    }
    return { decision, granted: 1 + further };
  }

  /** Returns the end of the last instance that was changed; undefined if none was. */
  #settle(decision: Decision, cost: number, now: number, undone?: number): number | undefined {
    if (!decision.takeCharge()) return undefined;
    const { account, route, windowSet, trace } = decision;
    const change = cost - decision.cost;
    let last: number | undefined;
    for (const part of this.#parts(windowSet)) {
      const { windows, counters } = this.#view(account, route, part);
      for (const window of trace.slice(part.from, part.to)) {
        const at = indexOfWindow(windows, window) * SLOTS_PER_WINDOW;
        const { durationMs, startedAt } = window;
        if (startedAt !== undefined && settleWindow(counters, at, durationMs, startedAt, change, now, undone))
          last = Math.max(last ?? now, startedAt + durationMs);
      }
    }
    if (last === undefined) decision.returnCharge();
    return last;
  }

  charge(account: string, route: string, windowSet: WindowSet, cost: number): readonly WindowStatus[] {
    const now = readClock(this.#clock);
    const { counters, addresses } = this.#load(account, route, windowSet, now);
    const { windows, durations } = windowSet;
    for (let i = 0; i < windows.length; i++)
      addBeyond(counters, i * SLOTS_PER_WINDOW, durations[i] as number, cost, now);
    this.#save(account, route, windowSet, counters, addresses, now);
    this.#records.sweep(ACCOUNTS_PER_SWEEP, now);
    return windows.map((window, i) => windowStatus(window, counters, i * SLOTS_PER_WINDOW, now, 0));
  }

  holdSlot(slot: Slot, leaseMs: number): SlotReply {
    this.#slots ??= new SlotTable(this.#maxKeys);
    return this.#slots.hold(slot, leaseMs, readClock(this.#clock));
  }

  releaseSlot(slot: Slot): void {
    this.#slots?.release(slot);
  }

  reset({ account, route }: ResetTarget): void {
    if (account !== undefined && route !== undefined) this.#records.remove(account, route);
    else if (account !== undefined) this.#records.removeWhere(account, () => true);
    else if (route !== undefined) this.#records.retireRoute(route);
    else {
      this.#sweptBefore += this.#records.swept;
      this.#records = new Records(this.#keysForShards);
    }
  }

  block(target: BlockTarget, block: Block, fresh?: FreshStart): void {
    this.#blocks ??= new Blocks(this.#maxKeys);
    this.#blocks.set(target, block, readClock(this.#clock));
    if (fresh !== undefined) this.reset(target);
  }

  unblock(target: BlockTarget): void {
    this.#blocks?.delete(target);
  }

  blocked(target: BlockTarget): Block | undefined {
    return this.#blocks?.find(target, readClock(this.#clock));
  }

  cooldown(target: BlockTarget, command: CooldownCommand): CooldownReply {
    this.#blocks ??= new Blocks(this.#maxKeys);
    this.#cooldowns ??= new Cooldowns(this.#blocks, this.#maxKeys);
    return this.#cooldowns.run(target, command, readClock(this.#clock));
  }

  /** Does nothing, because there is no server to wait for. */
  ready(): void {}

  stats(): MemoryStoreStats {
    return {
      keys: this.#records.size,
      maxKeys: this.#maxKeys,
      refused: this.#refused,
      swept: this.#sweptBefore + this.#records.swept,
    };
  }

  /**
   * The general case: a window set can need two records, and a record can be missing or contain other windows. All
   * windows are charged, or none (S5).
   */
  #consumeRecords(account: string, route: string, windowSet: WindowSet, cost: number, now: number): Decision {
    const { counters, addresses } = this.#load(account, route, windowSet, now);
    const rejectedBy = evaluate(windowSet, counters, 0, cost, now);
    // A rejection must not create a record (S5).
    if (rejectedBy === FITS) {
      const started = charge(windowSet, counters, 0, cost, now);
      this.#save(account, route, windowSet, counters, addresses, now);
      if (started) this.#records.sweep(ACCOUNTS_PER_SWEEP, now);
    }
    return new Decision(account, route, windowSet, cost, now, rejectedBy, counters);
  }

  /** A copy of the counters of a window set, and the addresses of their records. */
  #load(account: string, route: string, windowSet: WindowSet, now: number) {
    const parts = this.#parts(windowSet);
    const addresses = parts.map((part) => this.#locate(account, nameOf(part, route), part, now));
    const counters = emptyCounters(windowSet);
    for (const [i, { from, to }] of parts.entries())
      this.#records.slab.load(addresses[i] as number, counters, from, to);
    return { counters, addresses };
  }

  /**
   * Writes the counters to their records, and adds those that are missing.
   * @throws StoreFullError; nothing is changed then
   */
  #save(
    account: string,
    route: string,
    windowSet: WindowSet,
    counters: Counters,
    found: readonly number[],
    now: number,
  ): void {
    const parts = this.#parts(windowSet);
    let addresses = found;
    if (!this.#hasRoom(addresses)) {
      this.#records.sweep(ACCOUNTS_WHEN_FULL, now);
      // The sweep can have deleted a record of this account that was over.
      addresses = parts.map((part) => this.#locate(account, nameOf(part, route), part, now));
      if (!this.#hasRoom(addresses)) {
        this.#refused++;
        throw new StoreFullError(this.#maxKeys);
      }
    }
    for (const [i, part] of parts.entries()) {
      let address = addresses[i] as number;
      if (address === NOWHERE) address = this.#records.add(account, nameOf(part, route), part);
      this.#records.slab.save(address, counters, part.from, part.to);
    }
  }

  #view(account: string, route: string, part: WindowSetPart): RecordView {
    return this.#records.view(this.#records.findAny(account, nameOf(part, route)));
  }

  /** Address of the record, which is rebuilt if its windows are not the part's. */
  #locate(account: string, name: RecordName, part: WindowSetPart, now: number): number {
    const address = this.#records.findAny(account, name);
    if (address === NOWHERE || this.#records.hasLayout(address, part)) return address;
    return this.#rebuild(account, name, address, part, now);
  }

  /**
   * Makes the record start with the part's windows, and returns its new address (S10). Windows of an earlier window set
   * that are not over follow them: if that window set comes back, its counts still apply. That happens when two
   * gateways use different window sets for some minutes during a deployment.
   */
  #rebuild(account: string, name: RecordName, before: number, part: WindowSetPart, now: number): number {
    const { windows, ...view } = this.#records.view(before);
    const counters = view.counters.slice();
    const leftover = windows.filter(
      (window, i) =>
        indexOfWindow(part.windows, window) === -1 &&
        !isOver(counters[i * SLOTS_PER_WINDOW] as number, window.durationMs, now),
    );
    const rebuilt = partOf([...part.windows, ...leftover]);
    if (this.#records.hasLayout(before, rebuilt)) return before;
    this.#records.remove(account, name);
    const address = this.#records.add(account, name, rebuilt);
    const moved = this.#records.view(address).counters;
    for (const [i, window] of rebuilt.windows.entries()) {
      const from = indexOfWindow(windows, window) * SLOTS_PER_WINDOW;
      if (from >= 0) moved.set(counters.subarray(from, from + SLOTS_PER_WINDOW), i * SLOTS_PER_WINDOW);
    }
    return address;
  }

  /** Whether there is room for the missing records (S18). */
  #hasRoom(addresses: readonly number[]): boolean {
    return this.#records.size + addresses.filter((address) => address === NOWHERE).length <= this.#maxKeys;
  }

  #onlyPart(windowSet: WindowSet): WindowSetPart | undefined {
    const [first, second] = this.#parts(windowSet);
    this.#lastWindowSet = windowSet;
    this.#lastPart = second === undefined && !first?.shared ? first : undefined;
    return this.#lastPart;
  }

  #parts(windowSet: WindowSet): readonly WindowSetPart[] {
    let parts = this.#partsOfWindowSet.get(windowSet);
    if (parts === undefined) {
      parts = partsOf(windowSet);
      this.#partsOfWindowSet.set(windowSet, parts);
    }
    return parts;
  }
}

function nameOf({ shared }: WindowSetPart, route: string): RecordName {
  return shared ? ALL_ROUTES : route;
}
