/** No such name. */
export const UNKNOWN = -1;

/** A route; or a symbol, which no string of a caller's can equal. */
export type RecordName = string | symbol;

interface Entry {
  readonly name: RecordName;
  references: number;
}

/**
 * Small numbers for strings, so that a record holds a number where it would hold a reference. A name is forgotten, and its number used
 * again, when the last record that refers to it is gone: routes that come from the network cannot pile up.
 */
export class Names {
  readonly #ids = new Map<RecordName, number>();
  readonly #entries: (Entry | undefined)[] = [];
  readonly #free: number[] = [];

  /** The number of a name that some record refers to, else {@link UNKNOWN}. */
  find(name: RecordName): number {
    return this.#ids.get(name) ?? UNKNOWN;
  }

  /** Adds a reference to a name, new or known. */
  acquire(name: RecordName): number {
    const known = this.#ids.get(name);
    const id = known ?? this.#free.pop() ?? this.#entries.length;
    if (known === undefined) {
      this.#ids.set(name, id);
      this.#entries[id] = { name, references: 0 };
    }
    (this.#entries[id] as Entry).references++;
    return id;
  }

  release(id: number): void {
    const entry = this.#entries[id] as Entry;
    if (--entry.references > 0) return;
    this.#entries[id] = undefined;
    this.#free.push(id);
    if (this.#ids.get(entry.name) === id) this.#ids.delete(entry.name);
  }

  /** Makes the name unknown at once; records that refer to its number are told apart by {@link isRetired} and released later. */
  retire(name: RecordName): void {
    this.#ids.delete(name);
  }

  isRetired(id: number): boolean {
    return this.#ids.get((this.#entries[id] as Entry).name) !== id;
  }
}
