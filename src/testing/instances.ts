import type { ModelCharge } from './model.ts';

type Instance = Pick<ModelCharge, 'startedAt' | 'durationMs'>;

/**
 * The window instances of a history. A store may delete an instance once it is over. So a history must not move the
 * clock to where the model takes such an instance for active again.
 */
export class Instances {
  #all: Instance[] = [];
  /** Blocks are over at the same time in every store, but a store may delete one that is over. */
  #blocks: Instance[] = [];

  add(charges: readonly Instance[]): void {
    this.#all.push(...charges);
  }

  addBlock(block: Instance): void {
    this.#blocks.push(block);
  }

  clear(): void {
    this.#all = [];
  }

  /** The earliest time to which the clock can step back: the last end of an instance that passed. */
  earliest(now: number): number {
    return Math.max(
      ...[...this.#all, ...this.#blocks]
        .map(({ startedAt, durationMs }) => startedAt + durationMs)
        .filter((end) => end <= now),
    );
  }

  /** Whether an instance is over at `now` because its start is in the future, but no longer at `later`. */
  comesBack(now: number, later: number): boolean {
    return this.#all.some(({ startedAt }) => startedAt > now && startedAt <= later);
  }
}
