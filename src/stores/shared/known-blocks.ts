import { isHeadgateError } from '../../base/errors.ts';
import type { Block, BlockTarget } from '../../core/block.ts';
import { monotonicClock } from '../../core/clock.ts';
import { Blocks } from '../memory/blocks.ts';

/**
 * Blocks on the server, as far as this process set them or was told of them. They hold while the server does
 * not answer. Bounded.
 */
export class KnownBlocks {
  readonly #blocks: Blocks;

  constructor(maxBlocks: number) {
    this.#blocks = new Blocks(maxBlocks);
  }

  add(target: BlockTarget, block: Block): void {
    try {
      this.#blocks.set(target, block, monotonicClock.now());
    } catch (error) {
      // The server knows the block, so only an outage can let a request past it.
      if (!isHeadgateError(error, 'store_full')) throw error;
    }
  }

  delete(target: BlockTarget): void {
    this.#blocks.delete(target);
  }

  /** Notes that the server let a request past every block. */
  deleteAll(account: string, route: string): void {
    if (this.#blocks.size === 0) return;
    this.#blocks.delete({ account });
    this.#blocks.delete({ account, route });
  }

  find(account: string, route: string): Block | undefined {
    return this.#blocks.find({ account, route }, monotonicClock.now());
  }
}
