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
  unexpired,
} from '../../core/claim.ts';
import { claimName } from '../../core/claim-id.ts';
import { type Clock, monotonicClock } from '../../core/clock.ts';
import { OptionError, StoreFullError } from '../../core/errors.ts';
import { checkOptions } from '../../core/options.ts';
import type { ClaimId, ClaimStore, ClaimView } from '../../core/ports.ts';
import { type ClaimEntry, ClaimTable } from './claim-table.ts';
import { checkClock, checkMaxKeys, readClock } from './options.ts';
import { bytesOf, KeptResults } from './results.ts';

/** Options of {@link createMemoryClaimStore}. */
export interface MemoryClaimStoreOptions {
  /**
   * Most idempotency keys in the store, from 1 to 16,000,000. They do not count for a limiter's store. A full store
   * checks 256 keys for one that has expired. If it finds none, it refuses a new key with `StoreFullError` and counts
   * it in `stats().refused`. A claim in progress is never evicted (I13). Neither is a finished one, because its retry
   * would be executed again.
   * @default 100_000
   */
  readonly maxKeys?: number;
  /**
   * Most bytes of stored result values, counted as two per character. Past it, the values of the oldest results are
   * dropped and counted in `stats().dropped`. Their claims stay: a retry gets the reply that the original has completed
   * (I7).
   * @default 67_108_864 (64 MiB)
   */
  readonly maxBytes?: number;
  /**
   * Returns integer milliseconds.
   * @default a monotonic clock, which a step of the wall clock does not change (S15)
   */
  readonly clock?: Clock;
}

/** Figures of a memory claim store, for operators. */
export interface MemoryClaimStoreStats {
  /** Current number of keys, including those that have expired but are not swept yet. */
  readonly keys: number;
  readonly maxKeys: number;
  /** Bytes of all stored result values. */
  readonly bytes: number;
  readonly maxBytes: number;
  /** New keys refused since the start because the store was full. */
  readonly refused: number;
  /** Results whose value was dropped since the start, before their retention was over. */
  readonly dropped: number;
  /** Keys that had expired and have been swept since the start. */
  readonly swept: number;
}

/** A bounded, synchronous {@link ClaimStore} in this process's memory. A restart loses all claims (I8). */
export interface MemoryClaimStore extends ClaimStore {
  readonly synchronous: true;
  begin(id: ClaimId, command: BeginCommand): BeginReply;
  extend(id: ClaimId, command: HeldCommand): HeldReply;
  dispatch(id: ClaimId, command: HeldCommand): HeldReply;
  complete(id: ClaimId, command: CompleteCommand): CompleteReply;
  abandon(id: ClaimId, command: AbandonCommand): AbandonReply;
  inspect(id: ClaimId): ClaimView | undefined;
  close(): void;
  /** Returns the current figures. */
  stats(): MemoryClaimStoreStats;
}

const DEFAULT_MAX_KEYS = 100_000;
const DEFAULT_MAX_BYTES = 64 * 1024 * 1024;

/**
 * Commands between two sweeps. Commands do the sweeping in small steps, so that no timer is needed and no command is
 * slow.
 */
const COMMANDS_PER_SWEEP = 256;
/** Keys checked per sweep, and per new key: twice what was added, so the backlog of expired keys shrinks. */
const KEYS_PER_SWEEP = 2;
/** Keys checked when the store is full, before a new key is refused. */
const KEYS_WHEN_FULL = 256;

/**
 * Creates a claim store in memory. Each command is a function of `core/claim.ts`.
 * @throws OptionError
 */
export function createMemoryClaimStore(options: MemoryClaimStoreOptions = {}): MemoryClaimStore {
  checkOptions(options, ['maxKeys', 'maxBytes', 'clock'], 'options');
  const { maxKeys = DEFAULT_MAX_KEYS, maxBytes = DEFAULT_MAX_BYTES, clock = monotonicClock } = options;
  checkMaxKeys(maxKeys);
  if (!Number.isSafeInteger(maxBytes) || maxBytes < 0) {
    throw new OptionError('maxBytes', maxBytes, 'must be an integer of 0 or more');
  }
  checkClock(clock);
  return new MemoryClaims(maxKeys, maxBytes, clock);
}

type Apply<Command, Reply> = (record: ClaimRecord | undefined, command: Command, now: number) => ClaimStep<Reply>;

class MemoryClaims implements MemoryClaimStore {
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
    const now = readClock(this.#clock);
    const record = unexpired(this.#claims.get(claimName(id))?.record, now);
    if (record === undefined) return undefined;
    const { leaseUntil, keptUntil, ...rest } = record;
    const leaseMs = record.state === 'in_progress' ? Math.max(0, leaseUntil - now) : 0;
    return { ...rest, leaseMs, keptMs: keptUntil - now };
  }

  /** Does nothing, because the store has opened nothing. */
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

  #apply<Command, Reply>(id: ClaimId, step: Apply<Command, Reply>, command: Command): Reply {
    const now = readClock(this.#clock);
    if (++this.#commands % COMMANDS_PER_SWEEP === 0) this.#sweep(KEYS_PER_SWEEP, now);
    const name = claimName(id);
    const claim = this.#claims.get(name);
    const { record, reply } = step(claim?.record, command, now);
    if (record === claim?.record) return reply;
    if (claim === undefined) this.#add(name, record as ClaimRecord, now);
    else if (record === undefined) this.#expire(claim);
    else this.#replace(claim, record, now);
    return reply;
  }

  /** Throws before anything is stored, so that the sender of a refused command never gets a reply that is not true. */
  #add(name: string, record: ClaimRecord, now: number): void {
    if (this.#claims.size >= this.#maxKeys) this.#sweep(KEYS_WHEN_FULL, now);
    if (this.#claims.size >= this.#maxKeys) {
      this.#refused++;
      throw new StoreFullError(this.#maxKeys);
    }
    this.#storeValue(this.#claims.add(name, record), now);
    this.#sweep(KEYS_PER_SWEEP, now);
  }

  #replace(claim: ClaimEntry, record: ClaimRecord, now: number): void {
    this.#results.remove(claim);
    claim.record = record;
    this.#storeValue(claim, now);
  }

  /** Stores the value of the result. If there is no room for all values, the oldest ones are dropped. */
  #storeValue(claim: ClaimEntry, now: number): void {
    const bytes = bytesOf(claim.record);
    if (bytes === 0) return;
    if (bytes > this.#maxBytes) {
      // Even if all other values were dropped, it would not fit.
      this.#dropValue(claim);
      return;
    }
    while (this.#results.bytes + bytes > this.#maxBytes) {
      const oldest = this.#results.oldest as ClaimEntry;
      if (unexpired(oldest.record, now) === undefined) this.#expire(oldest);
      else this.#dropValue(oldest);
    }
    this.#results.add(claim);
  }

  /** Drops the value of a result. The claim stays, so that a retry is not executed again (I7). */
  #dropValue(claim: ClaimEntry): void {
    const { status } = claim.record.result as KeptResult;
    this.#results.remove(claim);
    claim.record = { ...claim.record, result: { status, value: undefined } };
    this.#dropped++;
  }

  /** Deletes an expired claim. */
  #expire(claim: ClaimEntry): void {
    this.#results.remove(claim);
    this.#claims.delete(claim);
    this.#swept++;
  }

  /**
   * Checks up to `maxChecked` keys, the longest unchecked first. Deletes expired keys and moves the others to the end.
   */
  #sweep(maxChecked: number, now: number): void {
    for (let left = Math.min(maxChecked, this.#claims.size); left > 0; left--) {
      const claim = this.#claims.first as ClaimEntry;
      if (unexpired(claim.record, now) === undefined) this.#expire(claim);
      else this.#claims.moveToEnd(claim);
    }
  }
}
