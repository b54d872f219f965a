import { type AdjustmentState, type Head, isSameHead } from '../core/adjustment.ts';
import { monotonicClock } from '../core/clock.ts';
import type { KeptFile } from './ports.ts';

/** A file with many adjustments is large, and changes may come one after the other. */
const SAVE_EVERY_MS = 1_000;

/** Keeps a process's knowledge of the adjustments in a file. */
export class KeptCopy {
  readonly #file: KeptFile;
  readonly #onFailure: (error: unknown) => void;
  #saved: Head | undefined;
  #saving: Promise<void> | undefined;
  #nextAt = 0;
  #hasFailed = false;
  /** A file that cannot be read may be of a later version, or of another program. */
  #isForeign = false;

  /** @param onFailure is called once until the file can be written again */
  constructor(file: KeptFile, onFailure: (error: unknown) => void) {
    this.#file = file;
    this.#onFailure = onFailure;
  }

  /** Returns the file's content; undefined if the file is missing or cannot be read. Never rejects. */
  async load(): Promise<AdjustmentState | undefined> {
    try {
      const state = await this.#file.load();
      this.#saved = state?.head;
      return state;
    } catch (error) {
      this.#isForeign = true;
      this.#onFailure(error);
      return undefined;
    }
  }

  /** Begins to save a state that is not saved yet; not if the last one was saved just now, so call it again. */
  follow(state: AdjustmentState | undefined): void {
    if (this.#saving === undefined && monotonicClock.now() >= this.#nextAt) this.#save(state);
  }

  /** Saves the last state. */
  async close(state: AdjustmentState | undefined): Promise<void> {
    await this.#saving;
    this.#save(state);
    await this.#saving;
  }

  #save(state: AdjustmentState | undefined): void {
    if (state === undefined || this.#isForeign || isSameHead(state.head, this.#saved)) return;
    const save = async (): Promise<void> => {
      try {
        await this.#file.save(state);
        this.#saved = state.head;
        this.#hasFailed = false;
      } catch (error) {
        if (!this.#hasFailed) this.#onFailure(error);
        this.#hasFailed = true;
      }
      this.#nextAt = monotonicClock.now() + SAVE_EVERY_MS;
      this.#saving = undefined;
    };
    this.#saving = save();
  }
}
