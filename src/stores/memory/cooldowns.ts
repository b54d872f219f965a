import type { BlockTarget } from '../../core/block.ts';
import {
  type CooldownCommand,
  type CooldownMark,
  type CooldownReply,
  changeCooldown,
  PROVIDER,
} from '../../core/cooldown.ts';
import { Blocks } from './blocks.ts';

/** The marks of cooldowns (S30). Bounded, as blocks are: a mark is stored like a block that rejects nothing. */
export class Cooldowns {
  readonly #blocks: Blocks;
  readonly #marks: Blocks;

  /** @param blocks those that reject requests */
  constructor(blocks: Blocks, maxMarks: number) {
    this.#blocks = blocks;
    this.#marks = new Blocks(maxMarks);
  }

  /** @throws StoreFullError; nothing is blocked then */
  run(target: BlockTarget, command: CooldownCommand, now: number): CooldownReply {
    const marked = this.#marks.exact(target, now)?.reason;
    const known = marked === undefined ? undefined : readMark(marked);
    const { blockMs, mark, forgets, reply } = changeCooldown(command, this.#blocks.exact(target, now), known, now);
    if (mark !== undefined) this.#marks.set(target, { forMs: mark.forMs, reason: textOf(mark) }, now);
    if (forgets) this.#marks.delete(target);
    if (blockMs === 0) this.#blocks.delete(target);
    else if (blockMs !== undefined) this.#blocks.set(target, { forMs: blockMs, reason: PROVIDER }, now);
    return reply;
  }
}

function textOf({ inARow, probeUntil }: CooldownMark): string {
  return `${inARow} ${probeUntil}`;
}

function readMark(text: string): CooldownMark {
  const [inARow = 0, probeUntil = 0] = text.split(' ').map(Number);
  return { inARow, probeUntil };
}
