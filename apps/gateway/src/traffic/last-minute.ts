/** Part of a minute that is counted by itself. */
const PART_MS = 10_000;
const PARTS = 6;

/**
 * Counts of the last minute per slot, in fixed memory. The current part is not over, so a count covers the last 50 to
 * 60 seconds, and never more.
 */
export class LastMinute {
  readonly #counts: Uint32Array;
  /** The part in which each slot was counted last. */
  readonly #lastParts: Uint32Array;

  constructor(slots: number) {
    this.#counts = new Uint32Array(slots * PARTS);
    this.#lastParts = new Uint32Array(slots);
  }

  add(slot: number, nowMs: number): void {
    const part = partOf(nowMs);
    const last = this.#lastParts[slot] as number;
    // If the clock was set back, the earlier counts are worthless.
    if (part < last || part - last >= PARTS) this.clear(slot);
    else for (let between = last + 1; between <= part; between++) this.#counts[placeOf(slot, between)] = 0;
    this.#lastParts[slot] = part;
    (this.#counts[placeOf(slot, part)] as number)++;
  }

  count(slot: number, nowMs: number): number {
    const now = partOf(nowMs);
    const last = this.#lastParts[slot] as number;
    if (last > now) return 0;
    let count = 0;
    for (let part = Math.max(0, now - PARTS + 1); part <= last; part++)
      count += this.#counts[placeOf(slot, part)] as number;
    return count;
  }

  /** The slot is another name's from now on. */
  clear(slot: number): void {
    this.#counts.fill(0, slot * PARTS, (slot + 1) * PARTS);
  }
}

function partOf(nowMs: number): number {
  return Math.floor(nowMs / PART_MS);
}

function placeOf(slot: number, part: number): number {
  return slot * PARTS + (part % PARTS);
}
