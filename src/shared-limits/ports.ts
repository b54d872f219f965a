import type { MaybePromise } from '../base/maybe-promise.ts';
import type { AdjustmentEntry, AdjustmentState, Head } from '../core/adjustment.ts';
import type { AdjustmentReply } from './lineage.ts';

/** A process that reads adjustments, as the store last heard of it. */
export interface AdjustmentInstance {
  readonly name: string;
  /** The change up to which it obeys the adjustments; undefined before its first one. */
  readonly head: Head | undefined;
  /** Milliseconds since the store heard of it. */
  readonly ageMs: number;
}

/**
 * Stores the adjustments of shared limits, and the history of their changes. Each method is one atomic step.
 *
 * A store only compares heads, and never decides which history is right: its callers do. If it does not know whether a
 * change was stored, it throws.
 */
export interface AdjustmentStore {
  /** Whether the adjustments outlive every process. */
  readonly durable: boolean;
  /**
   * Returns the entries of the store beyond the head `known`, with the time of its clock. At most 1,000 entries; past
   * that it returns everything.
   * @param instance name of the process, to be listed by `instances`; absent if it need not be noted this time
   */
  read(known: Head | undefined, instance?: string): MaybePromise<AdjustmentReply>;
  /**
   * Stores a change if the head is still `seen` (undefined: there is no history). False if it is another one; nothing
   * was stored then.
   */
  append(seen: Head | undefined, entry: AdjustmentEntry): MaybePromise<boolean>;
  /** Replaces everything by `state` if the head is still `seen`. False if the head changed. */
  restore(seen: Head | undefined, state: AdjustmentState): MaybePromise<boolean>;
  /**
   * Returns entries older than the version `before`, or the last ones; newest first. Perhaps fewer than `limit`, if
   * they are large, but one at least, if there is one.
   */
  history(before: number | undefined, limit: number): MaybePromise<readonly AdjustmentEntry[]>;
  /** Returns the processes that the store heard of in the last ten seconds. */
  instances(): MaybePromise<readonly AdjustmentInstance[]>;
  /** Closes the store's own resources, never an object that was passed to it. */
  close?(): MaybePromise<void>;
}

/**
 * A copy of the adjustments that a process last knew, outside of their store: for a start while the store is away or
 * has lost its data.
 */
export interface KeptFile {
  /** Returns the last saved value; undefined if there is none. Throws if `save` did not write it. */
  load(): MaybePromise<AdjustmentState | undefined>;
  /** Replaces the saved value. */
  save(state: AdjustmentState): MaybePromise<void>;
}
