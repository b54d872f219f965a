/** Amounts in use, per owner and of all owners together. */
export class Tally {
  /** Only owners of something in use. */
  readonly #byOwner = new Map<string, number>();
  #total = 0;

  /** The sum of all owners. */
  get total(): number {
    return this.#total;
  }

  of(owner: string): number {
    return this.#byOwner.get(owner) ?? 0;
  }

  /** @param change negative if the owner gives something back */
  add(owner: string, change: number): void {
    const amount = this.of(owner) + change;
    if (amount === 0) this.#byOwner.delete(owner);
    else this.#byOwner.set(owner, amount);
    this.#total += change;
  }
}
