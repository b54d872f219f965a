import { ScopeFullError, StoreFullError } from '../../base/errors.ts';
import type { Synchronous } from '../../base/maybe-promise.ts';
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
  isForgettable,
  isUnresolved,
  type KeptResult,
  unexpired,
} from '../../core/claim.ts';
import { claimName } from '../../core/claim-id.ts';
import type { ClaimId, ClaimPage, ClaimStore, ClaimView } from '../../core/ports.ts';
import {
  checkedShares,
  type FilledMemoryClaimOptions,
  fillClaimOptions,
  type MemoryClaimShares,
  type MemoryClaimStoreOptions,
} from './claim-options.ts';
import { ClaimTable } from './claim-table.ts';
import { idOf, listClaims, viewOf } from './claim-views.ts';
import { readClock } from './options.ts';
import { bytesOf, KeptResults } from './results.ts';
import type { ClaimEntry, ScopeClaims } from './scope-claims.ts';

export type { MemoryClaimShares, MemoryClaimStoreOptions } from './claim-options.ts';

/** Figures of a memory claim store, for operators. */
export interface MemoryClaimStoreStats {
  /** Current number of keys, including those that expired but are not swept yet. */
  readonly keys: number;
  readonly maxKeys: number;
  /** Bytes of all stored result values. */
  readonly bytes: number;
  readonly maxBytes: number;
  /** New keys refused since the start because the store was full. */
  readonly refused: number;
  /** New keys refused since the start because their scope was full. */
  readonly refusedInScope: number;
  /**
   * Released keys forgotten since the start, before their retention was over, because there was no room for a new key.
   */
  readonly forgotten: number;
  /** Results whose value was dropped since the start, before their retention was over. */
  readonly dropped: number;
  /**
   * Claims of unknown outcome forgotten since the start, after their retention, because their scope had no room for a
   * new key. A retry of such a request is executed again.
   */
  readonly forgottenUnresolved: number;
  /** Expired keys that were swept since the start. */
  readonly swept: number;
}

/** A bounded, synchronous {@link ClaimStore} in this process's memory. A restart loses all claims (I8). */
export interface MemoryClaimStore extends Synchronous<Required<Omit<ClaimStore, 'notes'>>> {
  readonly synchronous: true;
  onForgotten(listener: (id: ClaimId) => void): () => void;
  /** Returns at once, because there is no server. */
  ready(): void;
  close(): void;
  /**
   * Shares the store anew, for a number of scopes that changed. A scope with more keys than it may use now
   * keeps them, and gets no new ones until they expire.
   * @throws OptionError
   */
  setShares(shares: MemoryClaimShares): void;
  /** Returns the current figures. */
  stats(): MemoryClaimStoreStats;
}

/**
 * Commands between two sweeps. Commands do the sweeping in small steps, so that no timer is needed and no command is
 * slow.
 */
const COMMANDS_PER_SWEEP = 256;
/** Keys checked per sweep, and per new key: twice the added number, so the backlog of expired keys shrinks. */
const KEYS_PER_SWEEP = 2;
/** Keys checked when the store or the scope is full, before a new key is refused. */
const KEYS_WHEN_FULL = 256;

/**
 * Creates a claim store in memory. Each command is a function of `core/claim.ts`.
 * @throws OptionError
 */
export function createMemoryClaimStore(options: MemoryClaimStoreOptions = {}): MemoryClaimStore {
  return new MemoryClaims(fillClaimOptions(options));
}

type Apply<Command, Reply> = (record: ClaimRecord | undefined, command: Command, now: number) => ClaimStep<Reply>;

class MemoryClaims implements MemoryClaimStore {
  readonly synchronous = true;
  #options: FilledMemoryClaimOptions;
  readonly #listeners = new Set<(id: ClaimId) => void>();
  readonly #claims: ClaimTable;
  readonly #results = new KeptResults();
  /** Distinguishes its cursors from another process's. Made when it is needed: Workers refuse chance at the start. */
  #id: string | undefined;
  #commands = 0;
  #refused = 0;
  #refusedInScope = 0;
  #forgotten = 0;
  #forgottenUnresolved = 0;
  #dropped = 0;
  #swept = 0;

  constructor(options: FilledMemoryClaimOptions) {
    this.#options = options;
    this.#claims = new ClaimTable(options.maxKeys);
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
    const now = readClock(this.#options.clock);
    const record = unexpired(this.#claims.get(claimName(id))?.record, now);
    return record === undefined ? undefined : viewOf(record, now);
  }

  list(cursor: string | undefined, count: number): ClaimPage {
    this.#id ??= crypto.randomUUID();
    return listClaims(this.#claims, this.#id, cursor, count, readClock(this.#options.clock));
  }

  onForgotten(listener: (id: ClaimId) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Does nothing, because there is no server to wait for. */
  ready(): void {}

  /** Does nothing, because the store opened nothing. */
  close(): void {}

  setShares(shares: MemoryClaimShares): void {
    this.#options = { ...this.#options, ...checkedShares(shares, this.#options.maxKeys) };
  }

  stats(): MemoryClaimStoreStats {
    return {
      keys: this.#claims.size,
      maxKeys: this.#options.maxKeys,
      bytes: this.#results.bytes,
      maxBytes: this.#options.maxBytes,
      refused: this.#refused,
      refusedInScope: this.#refusedInScope,
      forgotten: this.#forgotten,
      forgottenUnresolved: this.#forgottenUnresolved,
      dropped: this.#dropped,
      swept: this.#swept,
    };
  }

  #apply<Command, Reply>(id: ClaimId, step: Apply<Command, Reply>, command: Command): Reply {
    const now = readClock(this.#options.clock);
    if (++this.#commands % COMMANDS_PER_SWEEP === 0) this.#sweep(KEYS_PER_SWEEP, now);
    const name = claimName(id);
    const claim = this.#claims.get(name);
    const { record, reply } = step(claim?.record, command, now);
    if (record === claim?.record) return reply;
    if (claim === undefined) this.#add(name, id.scope, record as ClaimRecord, now);
    else if (record === undefined) this.#expire(claim);
    else this.#replace(claim, record, now);
    return reply;
  }

  /** Throws before anything is stored, so that the sender of a refused command never gets a reply that is not true. */
  #add(name: string, scope: string, record: ClaimRecord, now: number): void {
    this.#makeRoomInScope(scope, now);
    this.#makeRoom(scope, now);
    this.#storeValue(this.#claims.add(name, scope, record), now);
    this.#sweep(KEYS_PER_SWEEP, now);
  }

  /**
   * A full scope pays for its new key itself: with keys that expired, with its oldest released key, or with its oldest
   * unknown outcome whose retention is over.
   */
  #makeRoomInScope(name: string, now: number): void {
    const { maxClaimsPerScope, maxKeys } = this.#options;
    const scope = this.#claims.scope(name);
    // A scope that may fill the store needs no bound.
    if (scope === undefined || scope.size < maxClaimsPerScope || maxClaimsPerScope === maxKeys) return;
    for (const claim of scope.oldestFirst(KEYS_WHEN_FULL)) {
      if (unexpired(claim.record, now) === undefined) this.#expire(claim);
      // Keys can have expired behind one that stays because its outcome is unknown.
      else if (!isUnresolved(claim.record)) break;
    }
    if (scope.size < maxClaimsPerScope) return;
    if (scope.oldestReleased !== undefined) {
      this.#forget(scope.oldestReleased, now);
      return;
    }
    // Keys with a shorter retention can have expired behind one with a longer.
    this.#sweep(KEYS_WHEN_FULL, now);
    while (scope.size >= maxClaimsPerScope && this.#forgetUnresolved(scope, now));
    if (scope.size >= maxClaimsPerScope) this.#refuseInScope(scope, now);
  }

  #makeRoom(name: string, now: number): void {
    const { maxKeys, minClaimsPerScope = Number.POSITIVE_INFINITY } = this.#options;
    const scope = this.#claims.scope(name);
    const isGuaranteed = scope === undefined || scope.size < minClaimsPerScope;
    // The other half is for the guarantees of the scopes.
    const max = isGuaranteed ? maxKeys : Math.floor(maxKeys / 2);
    if (this.#claims.size < max) return;
    const released = this.#sweep(KEYS_WHEN_FULL, now);
    if (this.#claims.size < max) return;
    // In the place of another scope's claim, this scope could take the other half too.
    const forgettable = scope?.oldestReleased ?? (isGuaranteed ? released : undefined);
    if (forgettable !== undefined) {
      this.#forget(forgettable, now);
      return;
    }
    if (scope !== undefined && this.#forgetUnresolved(scope, now)) return;
    if (!isGuaranteed) this.#refuseInScope(scope, now);
    this.#refused++;
    throw new StoreFullError(maxKeys);
  }

  /** The scope holds a claim, and none that is released. */
  #refuseInScope({ size, oldest }: ScopeClaims, now: number): never {
    this.#refusedInScope++;
    const { keptUntil } = (oldest as ClaimEntry).record;
    throw new ScopeFullError(size, Math.max(1, keptUntil - now));
  }

  /** Deletes a released claim. Nothing happened under it, so no request can be executed twice because of that. */
  #forget(claim: ClaimEntry, now: number): void {
    if (unexpired(claim.record, now) === undefined) this.#expire(claim);
    else {
      this.#claims.delete(claim);
      this.#forgotten++;
    }
  }

  /**
   * Deletes the scope's oldest claim of unknown outcome whose retention is over, if there is one. Only for a new key of
   * the same scope: no scope may make the store forget a claim of another one.
   */
  #forgetUnresolved(scope: ScopeClaims, now: number): boolean {
    for (const claim of scope.oldestFirst(KEYS_WHEN_FULL)) {
      if (!isForgettable(claim.record, now)) continue;
      this.#claims.delete(claim);
      this.#forgottenUnresolved++;
      for (const listener of this.#listeners) listener(idOf(claim));
      return true;
    }
    return false;
  }

  #replace(claim: ClaimEntry, record: ClaimRecord, now: number): void {
    this.#results.remove(claim);
    this.#claims.replace(claim, record);
    this.#storeValue(claim, now);
  }

  /** Stores the value of the result. If there is no room for all values, the oldest ones are dropped. */
  #storeValue(claim: ClaimEntry, now: number): void {
    const { maxBytes, maxBytesPerScope } = this.#options;
    const { scope } = claim;
    const bytes = bytesOf(claim.record);
    if (bytes === 0) return;
    if (bytes > maxBytesPerScope) {
      // Even if all other values were dropped, it would not fit.
      this.#dropValue(claim);
      return;
    }
    while (scope.bytes + bytes > maxBytesPerScope) this.#dropOldValue(scope.values.first as ClaimEntry, now);
    while (this.#results.bytes + bytes > maxBytes) {
      // Otherwise a few scopes with many values could drop the values of every other scope.
      const own = (scope.bytes + bytes) * this.#claims.scopes > maxBytes ? scope.values.first : undefined;
      this.#dropOldValue(own ?? (this.#results.oldest as ClaimEntry), now);
    }
    this.#results.add(claim);
  }

  #dropOldValue(claim: ClaimEntry, now: number): void {
    if (unexpired(claim.record, now) === undefined) this.#expire(claim);
    else this.#dropValue(claim);
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
   * Checks up to `maxChecked` keys, in rounds over all of them, and deletes those that expired. Returns a released
   * key that it found.
   */
  #sweep(maxChecked: number, now: number): ClaimEntry | undefined {
    let released: ClaimEntry | undefined;
    // One more than there are, because the end of a round also takes a step.
    for (let left = Math.min(maxChecked, this.#claims.size + 1); left > 0; left--) {
      const claim = this.#claims.next();
      if (claim === undefined) continue;
      if (unexpired(claim.record, now) === undefined) this.#expire(claim);
      else if (claim.record.state === 'free') released ??= claim;
    }
    return released;
  }
}
