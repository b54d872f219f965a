import type { ClaimRecord } from '../../core/claim.ts';

/** Neighbours of a claim in a {@link ClaimList}. */
interface Neighbours {
  before: ClaimEntry | undefined;
  after: ClaimEntry | undefined;
}

/** A claim in memory. `record` is replaced, never modified. */
export interface ClaimEntry {
  readonly name: string;
  /** Rises with every claim that is added. */
  readonly place: number;
  readonly scope: ScopeClaims;
  record: ClaimRecord;
  /** Bytes of the stored value; 0 without one. */
  bytes: number;
  /** Its place among the claims of its scope: among the released ones, or among all others. */
  inScope: Neighbours | undefined;
  /** Its places among the stored values of all scopes, and of its scope; undefined without a value. */
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

  /** @param place the field of a claim that links its neighbours in this list */
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

/** The claims of one scope, and their share of the store. */
export class ScopeClaims {
  readonly name: string;
  /** Claims that are not released. With one retention, the first one to expire is the first of the list. */
  readonly #others = new ClaimList('inScope');
  readonly #released = new ClaimList('inScope');
  /** Claims with a stored value, oldest value first. */
  readonly values = new ClaimList('inScopeValues');
  bytes = 0;
  #size = 0;

  constructor(name: string) {
    this.name = name;
  }

  /** Number of claims, including those that expired but are not swept yet. */
  get size(): number {
    return this.#size;
  }

  /** The claim that was written longest ago, of those that are not released. */
  get oldest(): ClaimEntry | undefined {
    return this.#others.first;
  }

  /** Up to `count` claims that are not released, beginning with {@link oldest}. Each may be deleted meanwhile. */
  *oldestFirst(count: number): Generator<ClaimEntry, void> {
    let claim = this.#others.first;
    for (let left = count; left > 0 && claim !== undefined; left--) {
      const next = claim.inScope?.after;
      yield claim;
      claim = next;
    }
  }

  /** The claim that was released longest ago. */
  get oldestReleased(): ClaimEntry | undefined {
    return this.#released.first;
  }

  /** Adds a claim that is new, or that was just removed. */
  add(claim: ClaimEntry): void {
    this.#size++;
    this.#listOf(claim).add(claim);
  }

  remove(claim: ClaimEntry): void {
    this.#size--;
    this.#listOf(claim).remove(claim);
  }

  #listOf({ record }: ClaimEntry): ClaimList {
    return record.state === 'free' ? this.#released : this.#others;
  }
}
