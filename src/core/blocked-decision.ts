import type { Block } from './block.ts';
import { Decision } from './decision.ts';
import type { WindowSet } from './window-set.ts';

/** Neither the index of a window nor FITS, so that no window is shown or traced. */
const BY_BLOCK = -2;

/**
 * A rejection by a block (S21). No window was checked. It is a separate class, so that a decision without a block has
 * no field for it.
 */
export class BlockedDecision extends Decision {
  readonly #block: Block;

  /** @param block as it was at `decidedAt` */
  constructor(
    account: string,
    route: string,
    windowSet: WindowSet,
    cost: number,
    decidedAt: number,
    block: Block,
    degraded = false,
  ) {
    super(account, route, windowSet, cost, decidedAt, BY_BLOCK, [], degraded);
    this.#block = block;
  }

  override get blocked(): Block {
    return this.#block;
  }

  override get impossible(): boolean {
    return false;
  }

  override asDegraded(): BlockedDecision {
    const { account, route, windowSet, cost, decidedAt } = this;
    return new BlockedDecision(account, route, windowSet, cost, decidedAt, this.#block, true);
  }
}
