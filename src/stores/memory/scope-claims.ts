import { type ClaimEntry, ClaimList } from './claim-list.ts';

/** The claims of one scope, and what they take of the store. */
export class ScopeClaims {
  readonly name: string;
  /** Claims that are not released. With one retention, the first one to expire is the first of the list. */
  readonly #others = new ClaimList('inScope');
  readonly #released = new ClaimList('inScope');
  /** Claims that have a stored value, oldest value first. */
  readonly values = new ClaimList('inScopeValues');
  bytes = 0;
  #size = 0;

  constructor(name: string) {
    this.name = name;
  }

  /** Number of claims, including those that have expired but are not swept yet. */
  get size(): number {
    return this.#size;
  }

  /** The claim that was written longest ago, of those that are not released. */
  get oldest(): ClaimEntry | undefined {
    return this.#others.first;
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
