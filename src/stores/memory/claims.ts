import {
  type AbandonCommand,
  type AbandonReply,
  abandon,
  type BeginCommand,
  type BeginReply,
  begin,
  type ClaimRecord,
  type ClaimStep,
  type CompleteCommand,
  type CompleteReply,
  complete,
  dispatch,
  extend,
  type HeldCommand,
  type HeldReply,
  type KeptResult,
  keptAt,
} from '../../core/claim.ts';
import { type Clock, monotonicClock } from '../../core/clock.ts';
import { ClockError, OptionError, StoreFullError } from '../../core/errors.ts';
import { checkOptions } from '../../core/options.ts';
import type { ClaimId, ClaimStore, ClaimView } from '../../core/ports.ts';
import { type Claim, ClaimTable } from './claim-table.ts';
import { bytesOf, KeptResults } from './results.ts';

/** Options of {@link createMemoryClaimStore}. */
export interface MemoryClaimStoreOptions {
  /**
   * Most idempotency keys held at a time, from 1 to 16,000,000; they are this store's own, beside a limiter's. A full store looks at 256 keys
   * for one whose retention is over; where it finds none, a new key is refused with `StoreFullError` and counted in `stats().refused`:
   * a claim in progress is never evicted (I13), and a finished one never forgotten, since its retry would run again.
   * @default 100_000
   */
  readonly maxKeys?: number;
  /**
   * Most bytes of kept results, counted as two a character. Past it the oldest results lose their value, counted in `stats().dropped`: the
   * claim stays, and a retry is told that the original completed (I7).
   * @default 67_108_864 (64 MiB)
   */
  readonly maxBytes?: number;
  /**
   * Integer milliseconds.
   * @default a monotonic clock, which a step of the wall clock does not move
   */
  readonly clock?: Clock;
}

/** What an operator sees of a memory claim store. */
export interface MemoryClaimStoreStats {
  /** Keys held now, those included that are over and wait for a sweep. */
  readonly keys: number;
  readonly maxKeys: number;
  /** Of the values of kept results. */
  readonly bytes: number;
  readonly maxBytes: number;
  /** New keys refused since the start for want of room. */
  readonly refused: number;
  /** Results that lost their value before their retention was over, since the start. */
  readonly dropped: number;
  /** Keys that were over and have left, since the start. */
  readonly swept: number;
}

/** A bounded, synchronous {@link ClaimStore} in this process's memory; it forgets everything on a restart (I8). */
export interface MemoryClaimStore extends ClaimStore {
  readonly synchronous: true;
  begin(id: ClaimId, command: BeginCommand): BeginReply;
  extend(id: ClaimId, command: HeldCommand): HeldReply;
  dispatch(id: ClaimId, command: HeldCommand): HeldReply;
  complete(id: ClaimId, command: CompleteCommand): CompleteReply;
  abandon(id: ClaimId, command: AbandonCommand): AbandonReply;
  inspect(id: ClaimId): ClaimView | undefined;
  close(): void;
  /** Its figures, as they are now. */
  stats(): MemoryClaimStoreStats;
}

const DEFAULT_MAX_KEYS = 100_000;
const DEFAULT_MAX_BYTES = 64 * 1024 * 1024;
/** V8's Map holds no more than 2^24 entries. */
const MOST_KEYS = 16_000_000;

/** Commands between two sweeps. Sweeping rides on traffic: no timer, and a share of the work too small to be felt. */
const COMMANDS_PER_SWEEP = 256;
/** Keys looked at in a sweep, and for each key that comes: twice what was added, so what is over shrinks. */
const KEYS_PER_SWEEP = 2;
/** Keys looked at when the store is full, before a newcomer is refused. */
const KEYS_WHEN_FULL = 256;

/**
 * Claims in memory, around the core's own step.
 * @throws OptionError
 */
export function createMemoryClaimStore(options: MemoryClaimStoreOptions = {}): MemoryClaimStore {
  checkOptions(options, ['maxKeys', 'maxBytes', 'clock'], 'options');
  const { maxKeys = DEFAULT_MAX_KEYS, maxBytes = DEFAULT_MAX_BYTES, clock = monotonicClock } = options;
  if (!Number.isSafeInteger(maxKeys) || maxKeys < 1 || maxKeys > MOST_KEYS) {
    throw new OptionError('maxKeys', maxKeys, `must be an integer from 1 to ${MOST_KEYS}`);
  }
  if (!Number.isSafeInteger(maxBytes) || maxBytes < 0) {
    throw new OptionError('maxBytes', maxBytes, 'must be an integer from 0 on');
  }
  if (typeof clock?.now !== 'function') throw new OptionError('clock', clock, 'must be an object with now()');
  return new Store(maxKeys, maxBytes, clock);
}

type Step<Command, Reply> = (record: ClaimRecord | undefined, command: Command, now: number) => ClaimStep<Reply>;

class Store implements MemoryClaimStore {
  readonly synchronous = true;
  readonly #maxKeys: number;
  readonly #maxBytes: number;
  readonly #clock: Clock;
  readonly #claims: ClaimTable;
  readonly #results = new KeptResults();
  #commands = 0;
  #refused = 0;
  #dropped = 0;
  #swept = 0;

  constructor(maxKeys: number, maxBytes: number, clock: Clock) {
    this.#maxKeys = maxKeys;
    this.#maxBytes = maxBytes;
    this.#clock = clock;
    this.#claims = new ClaimTable(maxKeys);
  }

  begin(id: ClaimId, command: BeginCommand): BeginReply {
    return this.#apply(id, begin, command);
  }

  extend(id: ClaimId, command: HeldCommand): HeldReply {
    return this.#apply(id, extend, command);
  }

  dispatch(id: ClaimId, command: HeldCommand): HeldReply {
    return this.#apply(id, dispatch, command);
  }

  complete(id: ClaimId, command: CompleteCommand): CompleteReply {
    return this.#apply(id, complete, command);
  }

  abandon(id: ClaimId, command: AbandonCommand): AbandonReply {
    return this.#apply(id, abandon, command);
  }

  inspect(id: ClaimId): ClaimView | undefined {
    const now = this.#now();
    const record = keptAt(this.#claims.get(nameOf(id))?.record, now);
    if (record === undefined) return undefined;
    const { leaseUntil, keptUntil, ...rest } = record;
    const leaseMs = record.state === 'in_progress' ? Math.max(0, leaseUntil - now) : 0;
    return { ...rest, leaseMs, keptMs: keptUntil - now };
  }

  /** Nothing was opened, so nothing is to be let go of. */
  close(): void {}

  stats(): MemoryClaimStoreStats {
    return {
      keys: this.#claims.size,
      maxKeys: this.#maxKeys,
      bytes: this.#results.bytes,
      maxBytes: this.#maxBytes,
      refused: this.#refused,
      dropped: this.#dropped,
      swept: this.#swept,
    };
  }

  #apply<Command, Reply>(id: ClaimId, step: Step<Command, Reply>, command: Command): Reply {
    const now = this.#now();
    if (++this.#commands % COMMANDS_PER_SWEEP === 0) this.#sweep(KEYS_PER_SWEEP, now);
    const name = nameOf(id);
    const claim = this.#claims.get(name);
    const { record, reply } = step(claim?.record, command, now);
    if (record === claim?.record) return reply;
    if (claim === undefined) this.#add(name, record as ClaimRecord, now);
    else if (record === undefined) this.#expire(claim);
    else this.#replace(claim, record, now);
    return reply;
  }

  /** Throws before anything is held, so that a refused sender is told nothing that does not stand. */
  #add(name: string, record: ClaimRecord, now: number): void {
    if (this.#claims.size >= this.#maxKeys) this.#sweep(KEYS_WHEN_FULL, now);
    if (this.#claims.size >= this.#maxKeys) {
      this.#refused++;
      throw new StoreFullError(this.#maxKeys);
    }
    this.#keep(this.#claims.add(name, record), now);
    this.#sweep(KEYS_PER_SWEEP, now);
  }

  #replace(claim: Claim, record: ClaimRecord, now: number): void {
    this.#results.remove(claim);
    claim.record = record;
    this.#keep(claim, now);
  }

  #remove(claim: Claim): void {
    this.#results.remove(claim);
    this.#claims.delete(claim);
  }

  /** Holds the result's value, at the price of older ones where there is no room for all. */
  #keep(claim: Claim, now: number): void {
    const bytes = bytesOf(claim.record);
    if (bytes === 0) return;
    if (bytes > this.#maxBytes) {
      // The others would all lose theirs, and it still would not fit.
      this.#drop(claim);
      return;
    }
    while (this.#results.bytes + bytes > this.#maxBytes) {
      const oldest = this.#results.oldest as Claim;
      if (keptAt(oldest.record, now) === undefined) this.#expire(oldest);
      else this.#drop(oldest);
    }
    this.#results.add(claim);
  }

  /** The claim stays, and says so to its retries (I7). */
  #drop(claim: Claim): void {
    const { status } = claim.record.result as KeptResult;
    this.#results.remove(claim);
    claim.record = { ...claim.record, result: { status, value: undefined } };
    this.#dropped++;
  }

  #expire(claim: Claim): void {
    this.#remove(claim);
    this.#swept++;
  }

  /** Looks at up to `most` keys, those first that were not looked at for longest: what is over leaves, the rest goes to the back. */
  #sweep(most: number, now: number): void {
    for (let looked = Math.min(most, this.#claims.size); looked > 0; looked--) {
      const claim = this.#claims.first as Claim;
      if (keptAt(claim.record, now) === undefined) this.#expire(claim);
      else this.#claims.postpone(claim);
    }
  }

  #now(): number {
    const now = this.#clock.now();
    if (!Number.isSafeInteger(now)) throw new ClockError(now);
    return now;
  }
}

/** One name for two strings; the length tells where the first one ends. */
function nameOf({ scope, key }: ClaimId): string {
  return `${scope.length}:${scope}${key}`;
}
