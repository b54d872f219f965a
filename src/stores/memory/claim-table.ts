import type { ClaimRecord } from '../../core/claim.ts';
import { ShardedMap } from './sharded-map.ts';

/** A claim in memory. `record` is replaced, never modified. */
export interface ClaimEntry {
  readonly name: string;
  record: ClaimRecord;
  /** Neighbours in the order in which the sweep checks the claims. */
  before: ClaimEntry | undefined;
  after: ClaimEntry | undefined;
  /** Neighbours in the order in which the results were stored; set only for claims that have a stored value. */
  older: ClaimEntry | undefined;
  newer: ClaimEntry | undefined;
  /** Bytes of the stored value; 0 without one. */
  bytes: number;
}

/**
 * Claims by name, and in the order of the sweep: a linked list through the claims themselves, which allocates nothing.
 */
export class ClaimTable {
  readonly #byName: ShardedMap<ClaimEntry>;
  #first: ClaimEntry | undefined;
  #last: ClaimEntry | undefined;
  #size = 0;

  constructor(maxKeys: number) {
    this.#byName = new ShardedMap(maxKeys);
  }

  get size(): number {
    return this.#size;
  }

  /** The claim that the sweep checks next. */
  get first(): ClaimEntry | undefined {
    return this.#first;
  }

  get(name: string): ClaimEntry | undefined {
    return this.#byName.get(name);
  }

  /** Adds a claim at the end. The name must be new. */
  add(name: string, record: ClaimRecord): ClaimEntry {
    const claim: ClaimEntry = {
      name,
      record,
      before: undefined,
      after: undefined,
      older: undefined,
      newer: undefined,
      bytes: 0,
    };
    this.#byName.set(name, claim);
    this.#size++;
    this.#append(claim);
    return claim;
  }

  delete(claim: ClaimEntry): void {
    this.#byName.delete(claim.name);
    this.#size--;
    this.#unlink(claim);
  }

  moveToEnd(claim: ClaimEntry): void {
    if (claim === this.#last) return;
    this.#unlink(claim);
    this.#append(claim);
  }

  #append(claim: ClaimEntry): void {
    claim.before = this.#last;
    claim.after = undefined;
    if (this.#last === undefined) this.#first = claim;
    else this.#last.after = claim;
    this.#last = claim;
  }

  #unlink(claim: ClaimEntry): void {
    if (claim.before === undefined) this.#first = claim.after;
    else claim.before.after = claim.after;
    if (claim.after === undefined) this.#last = claim.before;
    else claim.after.before = claim.before;
  }
}
