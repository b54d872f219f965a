import { isHeadgateError } from '../../base/errors.ts';
import type { Block, BlockTarget } from '../../core/block.ts';
import { monotonicClock } from '../../core/clock.ts';
import { type CooldownCommand, type CooldownReply, changeCooldown, PROVIDER } from '../../core/cooldown.ts';
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

  find(account: string, route: string | undefined): Block | undefined {
    return this.#blocks.find({ account, route }, monotonicClock.now());
  }
}

/**
 * Changes a cooldown on the server, and what this process knows of it. If the server does not answer, the pause holds here
 * all the same: the provider's answer is known.
 */
export async function keepingCooldown(
  knownBlocks: KnownBlocks,
  target: BlockTarget,
  command: CooldownCommand,
  send: () => Promise<CooldownReply | undefined>,
): Promise<CooldownReply | undefined> {
  try {
    const reply = await send();
    if (reply?.state === 'started') knownBlocks.add(target, { forMs: reply.forMs, reason: PROVIDER });
    else if (reply?.state === 'open') knownBlocks.delete(target);
    return reply;
  } catch (error) {
    if (command.kind === 'start') {
      const { forMs } = changeCooldown(command, undefined, undefined, 0).reply;
      if (knownBlocks.find(target.account, target.route) === undefined)
        knownBlocks.add(target, { forMs, reason: PROVIDER });
    }
    throw error;
  }
}
