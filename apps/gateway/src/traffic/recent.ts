/** The newest entries of a list, in bounded memory. */
export class Recent<Entry> {
  readonly #entries: (Entry | undefined)[];
  #count = 0;

  constructor(readonly size: number) {
    this.#entries = new Array<Entry | undefined>(size).fill(undefined);
  }

  /** How many have been added since the start. */
  get count(): number {
    return this.#count;
  }

  add(entry: Entry): void {
    this.#entries[this.#count % this.size] = entry;
    this.#count++;
  }

  /** The entries, the newest first. */
  *newestFirst(): Generator<Entry> {
    for (let at = this.#count - 1; at >= Math.max(0, this.#count - this.size); at--)
      yield this.#entries[at % this.size] as Entry;
  }
}
