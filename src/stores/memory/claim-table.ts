import type { ClaimRecord } from '../../core/claim.ts';
import { type ClaimEntry, ScopeClaims } from './scope-claims.ts';
import { ShardedMap } from './sharded-map.ts';

/** Claims by name and by scope. */
export class ClaimTable {
  readonly #byName: ShardedMap<ClaimEntry>;
  readonly #scopes = new Map<string, ScopeClaims>();
  #size = 0;
  #places = 0;

  constructor(maxKeys: number) {
    this.#byName = new ShardedMap(maxKeys);
  }

  get size(): number {
    return this.#size;
  }

  /** Number of scopes with claims. */
  get scopes(): number {
    return this.#scopes.size;
  }

  get(name: string): ClaimEntry | undefined {
    return this.#byName.get(name);
  }

  /** The claims of a scope, or undefined. */
  scope(name: string): ScopeClaims | undefined {
    return this.#scopes.get(name);
  }

  /** Returns the claims one by one, round after round. Undefined at the end of a part of a round. */
  next(): ClaimEntry | undefined {
    const name = this.#byName.nextKey();
    return name === undefined ? undefined : this.#byName.get(name);
  }

  /** Number of parts in which {@link entriesOf} returns the claims. */
  get parts(): number {
    return this.#byName.shards;
  }

  /** The claims of a part, in the order of their places. */
  entriesOf(part: number): Iterable<ClaimEntry> {
    return this.#byName.valuesOf(part);
  }

  /** Adds a claim. The name must be new. */
  add(name: string, scopeName: string, record: ClaimRecord): ClaimEntry {
    let scope = this.#scopes.get(scopeName);
    if (scope === undefined) {
      scope = new ScopeClaims(scopeName);
      this.#scopes.set(scopeName, scope);
    }
    const claim: ClaimEntry = {
      name,
      place: ++this.#places,
      scope,
      record,
      bytes: 0,
      inScope: undefined,
      inValues: undefined,
      inScopeValues: undefined,
    };
    this.#byName.set(name, claim);
    this.#size++;
    scope.add(claim);
    return claim;
  }

  /** Gives a claim another record. The claim is then the newest of its scope. */
  replace(claim: ClaimEntry, record: ClaimRecord): void {
    claim.scope.remove(claim);
    claim.record = record;
    claim.scope.add(claim);
  }

  delete(claim: ClaimEntry): void {
    const { name, scope } = claim;
    this.#byName.delete(name);
    this.#size--;
    scope.remove(claim);
    if (scope.size === 0) this.#scopes.delete(scope.name);
  }
}
