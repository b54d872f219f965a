import { StoreFullError } from '../../base/errors.ts';

/** Receipts checked per new one: twice the number that it adds, so those that are over do not pile up. */
const CHECKED = 2;
/** Receipts checked when there is no room, before a new one is refused. */
const CHECKED_WHEN_FULL = 256;

/**
 * The receipts that were settled, each until the windows of its decision are over (S37). Bounded: one that is not over
 * is never forgotten to make room.
 */
export class SettledReceipts {
  readonly #ends = new Map<string, number>();
  readonly #max: number;

  constructor(max: number) {
    this.#max = max;
  }

  has(receipt: string, now: number): boolean {
    return (this.#ends.get(receipt) ?? now) > now;
  }

  /** @throws StoreFullError */
  makeRoom(now: number): void {
    this.#sweep(this.#ends.size < this.#max ? CHECKED : CHECKED_WHEN_FULL, now);
    if (this.#ends.size >= this.#max) throw new StoreFullError(this.#max, 'settled receipts');
  }

  add(receipt: string, end: number): void {
    this.#ends.set(receipt, end);
  }

  #sweep(count: number, now: number): void {
    let left = Math.min(count, this.#ends.size);
    for (const [receipt, end] of this.#ends) {
      if (left-- === 0) return;
      // One that stays moves to the end, so that the next sweep checks others.
      this.#ends.delete(receipt);
      if (end > now) this.#ends.set(receipt, end);
    }
  }
}
