/** Number of an unknown name. */
export const UNKNOWN = -1;

/** A route, or a symbol, which differs from every string that a caller can pass. */
export type RecordName = string | symbol;

interface Entry {
  readonly name: RecordName;
  references: number;
}

/**
 * Gives each name a small number, so that a record can store a number instead of a reference. When the last record with
 * a name is deleted, the name is deleted and its number is reused. So routes from the network cannot pile up.
 */
export class Names {
  readonly #ids = new Map<RecordName, number>();
  readonly #entries: (Entry | undefined)[] = [];
  readonly #free: number[] = [];

  /** Returns the number of a name that a record refers to, else {@link UNKNOWN}. */
  find(name: RecordName): number {
    return this.#ids.get(name) ?? UNKNOWN;
  }

  /** Adds a reference to a new or known name, and returns its number. */
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

  /** Removes a reference. */
  release(id: number): void {
    const entry = this.#entries[id] as Entry;
    if (--entry.references > 0) return;
    this.#entries[id] = undefined;
    this.#free.push(id);
    if (this.#ids.get(entry.name) === id) this.#ids.delete(entry.name);
  }

  /** Makes the name unknown at once. Records that still store its number ({@link isRetired}) are released later. */
  retire(name: RecordName): void {
    this.#ids.delete(name);
  }

  isRetired(id: number): boolean {
    return this.#ids.get((this.#entries[id] as Entry).name) !== id;
  }
}
