import { OptionError, StoreUnavailableError } from '../../base/errors.ts';
import { checkOptions } from '../../base/options.ts';
import { Turns } from '../../base/turns.ts';
import type { AdjustmentEntry, AdjustmentState, Head } from '../../core/adjustment.ts';
import { type Clock, monotonicClock } from '../../core/clock.ts';
import { checkClock } from '../../stores/memory/options.ts';
import type { AdjustmentReply } from '../lineage.ts';
import type { AdjustmentInstance, AdjustmentStore, KeptFile } from '../ports.ts';
import { MemoryAdjustments } from './memory.ts';
import { loadState, saveState } from './state-file.ts';

/** Options of {@link createFileAdjustments}. */
export interface FileAdjustmentsOptions {
  /**
   * Returns integer milliseconds since 1970, for the moments of changes.
   * @default a monotonic clock, which a step of the wall clock does not change
   */
  readonly clock?: Clock | undefined;
}

/**
 * Creates a store of adjustments in a file, for one process. A change is on the disk before it is acknowledged. The
 * file is replaced as a whole, so that a crash leaves the old one or the new one.
 * @throws OptionError
 */
export function createFileAdjustments(path: string, options: FileAdjustmentsOptions = {}): AdjustmentStore {
  checkPath(path);
  checkOptions(options, ['clock'], 'options');
  const { clock = monotonicClock } = options;
  checkClock(clock);
  return new FileAdjustments(path, new MemoryAdjustments(clock));
}

/**
 * Creates the kept file of a process whose adjustments are in another store, such as Redis. The file contains what
 * the process last knew, for a start while that store is away or lost its data. Several processes may have the same
 * file: each replaces it as a whole.
 * @throws OptionError
 */
export function createKeptFile(path: string): KeptFile {
  checkPath(path);
  return { load: () => loadState(path), save: (state) => saveState(path, state) };
}

function checkPath(path: string): void {
  if (typeof path !== 'string' || path === '') throw new OptionError('path', path, 'must be the path of a file');
}

class FileAdjustments implements AdjustmentStore {
  readonly durable = true;
  readonly #path: string;
  readonly #memory: MemoryAdjustments;
  /** A call must not see a change that is not on the disk yet. */
  readonly #turns = new Turns();
  #isLoaded = false;

  constructor(path: string, memory: MemoryAdjustments) {
    this.#path = path;
    this.#memory = memory;
  }

  read(known: Head | undefined, instance?: string): Promise<AdjustmentReply> {
    return this.#run(() => this.#memory.read(known, instance));
  }

  append(seen: Head | undefined, entry: AdjustmentEntry): Promise<boolean> {
    return this.#run(() => this.#change(() => this.#memory.append(seen, entry)));
  }

  restore(seen: Head | undefined, state: AdjustmentState): Promise<boolean> {
    return this.#run(() => this.#change(() => this.#memory.restore(seen, state)));
  }

  history(before: number | undefined, limit: number): Promise<readonly AdjustmentEntry[]> {
    return this.#run(() => this.#memory.history(before, limit));
  }

  instances(): Promise<readonly AdjustmentInstance[]> {
    return this.#run(() => this.#memory.instances());
  }

  #run<T>(call: () => T | Promise<T>): Promise<T> {
    return this.#turns.run(async () => {
      try {
        if (!this.#isLoaded) this.#memory.replace(await loadState(this.#path));
        this.#isLoaded = true;
        return await call();
      } catch (error) {
        throw new StoreUnavailableError(error);
      }
    });
  }

  async #change(change: () => boolean): Promise<boolean> {
    const before = this.#memory.state;
    if (!change()) return false;
    try {
      await saveState(this.#path, this.#memory.state as AdjustmentState);
    } catch (error) {
      this.#memory.replace(before);
      throw error;
    }
    return true;
  }
}
