import type { ClaimRecord } from '../../core/claim.ts';
import type { ScopeClaims } from './scope-claims.ts';

/** Neighbours of a claim in a {@link ClaimList}. */
interface Neighbours {
  before: ClaimEntry | undefined;
  after: ClaimEntry | undefined;
}

/** A claim in memory. `record` is replaced, never modified. */
export interface ClaimEntry {
  readonly name: string;
  readonly scope: ScopeClaims;
  record: ClaimRecord;
  /** Bytes of the stored value; 0 without one. */
  bytes: number;
  /** Its place among the claims of its scope: among the released ones, or among all others. */
  inScope: Neighbours | undefined;
  /** Its places among the stored values of all scopes, and of its own; undefined without a value. */
  inValues: Neighbours | undefined;
  inScopeValues: Neighbours | undefined;
}

/**
 * Claims in the order in which they were added, as a linked list through the claims themselves. A Map is slow at
 * deleting its first entry again and again.
 */
export class ClaimList {
  readonly #place: 'inScope' | 'inValues' | 'inScopeValues';
  #first: ClaimEntry | undefined;
  #last: ClaimEntry | undefined;

  /** @param place the field of a claim that has its neighbours in this list */
  constructor(place: 'inScope' | 'inValues' | 'inScopeValues') {
    this.#place = place;
  }

  get first(): ClaimEntry | undefined {
    return this.#first;
  }

  /** Adds a claim at the end. */
  add(claim: ClaimEntry): void {
    const last = this.#last;
    claim[this.#place] = { before: last, after: undefined };
    if (last === undefined) this.#first = claim;
    else this.#neighbours(last).after = claim;
    this.#last = claim;
  }

  remove(claim: ClaimEntry): void {
    const { before, after } = this.#neighbours(claim);
    if (before === undefined) this.#first = after;
    else this.#neighbours(before).after = after;
    if (after === undefined) this.#last = before;
    else this.#neighbours(after).before = before;
    claim[this.#place] = undefined;
  }

  #neighbours(claim: ClaimEntry): Neighbours {
    return claim[this.#place] as Neighbours;
  }
}
