/**
 * Adjustments of limits in a file, for one process.
 * @module headgate/file
 */

import { open, readFile, rename, rm } from 'node:fs/promises';
import type { AdjustmentEntry, AdjustmentState, Head } from '../../core/adjustment.ts';
import { type Clock, monotonicClock } from '../../core/clock.ts';
import { OptionError, StoreUnavailableError } from '../../core/errors.ts';
import type { AdjustmentReply } from '../../core/lineage.ts';
import { checkOptions } from '../../core/options.ts';
import type { AdjustmentInstance, AdjustmentStore, InstancesOptions } from '../../core/ports.ts';
import { Turns } from '../../core/turns.ts';
import { MemoryAdjustments } from '../memory/adjustments.ts';
import { checkClock } from '../memory/options.ts';
import { readState } from '../shared/stored-adjustments.ts';

/** Options of {@link createFileAdjustments}. */
export interface FileAdjustmentsOptions {
  /**
   * Returns integer milliseconds since 1970, for the moments of changes.
   * @default a monotonic clock, which a step of the wall clock does not change
   */
  readonly clock?: Clock | undefined;
}

/** A later format is not read as this one. */
const FORMAT = 1;

/**
 * Creates a store of adjustments in a file, for one process. A change is on the disk before it is acknowledged. The file
 * is replaced as a whole, so that a crash leaves the old one or the new one.
 * @throws OptionError
 */
export function createFileAdjustments(path: string, options: FileAdjustmentsOptions = {}): AdjustmentStore {
  if (typeof path !== 'string' || path === '') throw new OptionError('path', path, 'must be the path of a file');
  checkOptions(options, ['clock'], 'options');
  const { clock = monotonicClock } = options;
  checkClock(clock);
  return new FileAdjustments(path, new MemoryAdjustments(clock));
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

  read(known: Head | undefined, instance?: string, details?: string): Promise<AdjustmentReply> {
    return this.#run(() => this.#memory.read(known, instance, details));
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

  instances(options?: InstancesOptions): Promise<readonly AdjustmentInstance[]> {
    return this.#run(() => this.#memory.instances(options));
  }

  #run<T>(call: () => T | Promise<T>): Promise<T> {
    return this.#turns.run(async () => {
      try {
        if (!this.#isLoaded) this.#memory.replace(await load(this.#path));
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
      await save(this.#path, this.#memory.state as AdjustmentState);
    } catch (error) {
      this.#memory.replace(before);
      throw error;
    }
    return true;
  }
}

/** Undefined without a file. */
async function load(path: string): Promise<AdjustmentState | undefined> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
  try {
    const stored = JSON.parse(text);
    if (stored?.format !== FORMAT) throw new TypeError(`format must be ${FORMAT}`);
    return await readState(stored);
  } catch (error) {
    throw new Error(`${path} has no adjustments that can be read: correct it, or remove it to begin without any`, {
      cause: error,
    });
  }
}

async function save(path: string, state: AdjustmentState): Promise<void> {
  const written = `${path}.new`;
  try {
    const file = await open(written, 'w', 0o600);
    try {
      await file.writeFile(JSON.stringify({ format: FORMAT, ...state }));
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(written, path);
  } catch (error) {
    await rm(written, { force: true });
    throw error;
  }
}
