import type { ClaimRecord } from '../../core/claim.ts';

/** A claim in memory. The record is never changed, but replaced. */
export interface Claim {
  readonly name: string;
  record: ClaimRecord;
  /** Neighbours in the order in which claims are looked at. */
  before: Claim | undefined;
  after: Claim | undefined;
  /** Neighbours in the order in which results were kept, of claims that hold one. */
  older: Claim | undefined;
  newer: Claim | undefined;
  /** Of its result's value; 0 without one. */
  bytes: number;
}

/**
 * Claims that one map should hold: a JavaScript map grows by building itself anew in one go, which at a million entries stops the process for 50 to
 * 200 ms, and many of them do it at about the same time, since claims spread evenly.
 */
const CLAIMS_PER_MAP = 8_192;
/** Characters of a name that choose its map. */
const HASHED = 8;

/** Claims by name, and in an order that goes round: a linked list through the claims themselves, which nothing has to be allocated for. */
export class ClaimTable {
  readonly #maps: readonly Map<string, Claim>[];
  #first: Claim | undefined;
  #last: Claim | undefined;
  #size = 0;

  constructor(most: number) {
    this.#maps = Array.from({ length: Math.ceil(most / CLAIMS_PER_MAP) }, () => new Map());
  }

  get size(): number {
    return this.#size;
  }

  /** The claim that is the next to be looked at. */
  get first(): Claim | undefined {
    return this.#first;
  }

  get(name: string): Claim | undefined {
    return this.#map(name).get(name);
  }

  /** Adds a claim at the back; the name must be new. */
  add(name: string, record: ClaimRecord): Claim {
    const claim: Claim = {
      name,
      record,
      before: undefined,
      after: undefined,
      older: undefined,
      newer: undefined,
      bytes: 0,
    };
    this.#map(name).set(name, claim);
    this.#size++;
    this.#append(claim);
    return claim;
  }

  delete(claim: Claim): void {
    this.#map(claim.name).delete(claim.name);
    this.#size--;
    this.#unlink(claim);
  }

  /** Moves a claim to the back. */
  postpone(claim: Claim): void {
    if (claim === this.#last) return;
    this.#unlink(claim);
    this.#append(claim);
  }

  #append(claim: Claim): void {
    claim.before = this.#last;
    claim.after = undefined;
    if (this.#last === undefined) this.#first = claim;
    else this.#last.after = claim;
    this.#last = claim;
  }

  #unlink(claim: Claim): void {
    if (claim.before === undefined) this.#first = claim.after;
    else claim.before.after = claim.after;
    if (claim.after === undefined) this.#last = claim.before;
    else claim.after.before = claim.before;
  }

  /** By the name's end, where keys differ most; names that are all alike there share a map, which costs no more than its growing. */
  #map(name: string): Map<string, Claim> {
    const count = this.#maps.length;
    if (count === 1) return this.#maps[0] as Map<string, Claim>;
    let hash = name.length;
    for (let i = Math.max(0, name.length - HASHED); i < name.length; i++) {
      hash = Math.imul(hash ^ name.charCodeAt(i), 0x01000193);
    }
    return this.#maps[((hash ^ (hash >>> 15)) >>> 0) % count] as Map<string, Claim>;
  }
}
