/** Items that wait, one line per owner. Owners take turns, and each line is first in, first out. */
export class FairQueue<Item> {
  /** In the order of the turns: the owner that was served last is the last one. No line is empty. */
  readonly #lines = new Map<string, Set<Item>>();
  #size = 0;

  /** Items of all owners. */
  get size(): number {
    return this.#size;
  }

  /** Items of one owner. */
  lengthOf(owner: string): number {
    return this.#lines.get(owner)?.size ?? 0;
  }

  /** The item that is next if every owner may go. */
  get first(): Item | undefined {
    for (const [item] of this.#lines.values()) return item;
    return undefined;
  }

  push(owner: string, item: Item): void {
    const line = this.#lines.get(owner);
    if (line === undefined) this.#lines.set(owner, new Set([item]));
    else line.add(item);
    this.#size++;
  }

  /** Removes an item that no longer waits. Does nothing if it is not in the queue. */
  delete(owner: string, item: Item): void {
    const line = this.#lines.get(owner);
    if (line?.delete(item) !== true) return;
    this.#size--;
    if (line.size === 0) this.#lines.delete(owner);
  }

  /**
   * Removes and returns the next item: the oldest one of the first owner, in turn, that `mayGo` accepts.
   * @param mayGo accepts every owner by default
   * @returns undefined if no owner is accepted
   */
  next(mayGo: (owner: string) => boolean = () => true): Item | undefined {
    for (const [owner, line] of this.#lines) {
      if (!mayGo(owner)) continue;
      const [item] = line as Set<Item> & Iterable<Item>;
      this.#lines.delete(owner);
      line.delete(item as Item);
      if (line.size > 0) this.#lines.set(owner, line);
      this.#size--;
      return item;
    }
    return undefined;
  }

  /** Removes and returns everything. */
  clear(): Item[] {
    const items = [...this.#lines.values()].flatMap((line) => [...line]);
    this.#lines.clear();
    this.#size = 0;
    return items;
  }
}
