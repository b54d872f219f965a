import { StoreFullError } from '../../base/errors.ts';
import type { Block, BlockTarget } from '../../core/block.ts';

/** The blocks of an account by route; the key of the whole account's block is undefined. */
type AccountBlocks = Map<string | undefined, StoredBlock>;

interface StoredBlock {
  readonly until: number;
  readonly reason: string | undefined;
}

/** Accounts checked per new block: twice the number that it can add, so blocks that are over do not pile up. */
const ACCOUNTS_PER_BLOCK = 2;
/** Accounts checked when there is no room, before a new block is refused. */
const ACCOUNTS_WHEN_FULL = 256;

/** Blocks of accounts and of their routes (S21). Bounded: a block that is not over is never forgotten to make room. */
export class Blocks {
  readonly #byAccount = new Map<string, AccountBlocks>();
  readonly #maxBlocks: number;
  #size = 0;

  constructor(maxBlocks: number) {
    this.#maxBlocks = maxBlocks;
  }

  /** Number of blocks, including those that are over but not swept yet. */
  get size(): number {
    return this.#size;
  }

  /**
   * Adds a block, or replaces the block of the same target.
   * @throws StoreFullError
   */
  set({ account, route }: BlockTarget, { forMs, reason }: Block, now: number): void {
    let blocks = this.#byAccount.get(account);
    if (blocks?.has(route) !== true) {
      this.#sweep(this.#size < this.#maxBlocks ? ACCOUNTS_PER_BLOCK : ACCOUNTS_WHEN_FULL, now);
      if (this.#size >= this.#maxBlocks) throw new StoreFullError(this.#maxBlocks);
      this.#size++;
      // The sweep can have deleted the map.
      blocks = this.#byAccount.get(account) ?? new Map();
      this.#byAccount.set(account, blocks);
    }
    blocks.set(route, { until: now + forMs, reason });
  }

  delete({ account, route }: BlockTarget): void {
    const blocks = this.#byAccount.get(account);
    if (blocks?.delete(route) !== true) return;
    this.#size--;
    if (blocks.size === 0) this.#byAccount.delete(account);
  }

  /** The block that rejects requests of the target; of two blocks, the block that ends later. */
  find({ account, route }: BlockTarget, now: number): Block | undefined {
    const blocks = this.#byAccount.get(account);
    if (blocks === undefined) return undefined;
    const ofAccount = blocks.get(undefined);
    const ofRoute = blocks.get(route);
    const found = (ofAccount?.until ?? now) >= (ofRoute?.until ?? now) ? ofAccount : ofRoute;
    return found === undefined || found.until <= now ? undefined : { forMs: found.until - now, reason: found.reason };
  }

  /** The block of exactly this target. */
  exact({ account, route }: BlockTarget, now: number): Block | undefined {
    const found = this.#byAccount.get(account)?.get(route);
    return found === undefined || found.until <= now ? undefined : { forMs: found.until - now, reason: found.reason };
  }

  /** Checks up to `maxAccounts` accounts, in rounds over all of them, and deletes their blocks that are over. */
  #sweep(maxAccounts: number, now: number): void {
    let left = Math.min(maxAccounts, this.#byAccount.size);
    for (const [account, blocks] of this.#byAccount) {
      if (left-- === 0) return;
      for (const [route, { until }] of blocks) if (until <= now) this.delete({ account, route });
      // An account that stays moves to the end, so that the next sweep checks others.
      if (this.#byAccount.delete(account)) this.#byAccount.set(account, blocks);
    }
  }
}
