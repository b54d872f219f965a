import type { ClaimRecord } from '../../core/claim.ts';
import { type ClaimEntry, ClaimList } from './scope-claims.ts';

/** Most bytes per character: V8 stores a string with one or two bytes per character, and does not say which. */
const BYTES_PER_CHARACTER = 2;

/** The stored values of all scopes, oldest first. */
export class KeptResults {
  readonly #values = new ClaimList('inValues');
  #bytes = 0;

  get bytes(): number {
    return this.#bytes;
  }

  get oldest(): ClaimEntry | undefined {
    return this.#values.first;
  }

  /** Adds a claim that was just completed. Its result must contain a value. */
  add(claim: ClaimEntry): void {
    const bytes = bytesOf(claim.record);
    claim.bytes = bytes;
    this.#bytes += bytes;
    claim.scope.bytes += bytes;
    this.#values.add(claim);
    claim.scope.values.add(claim);
  }

  /** Removes the claim from this list. The caller changes the record. */
  remove(claim: ClaimEntry): void {
    if (claim.bytes === 0) return;
    this.#bytes -= claim.bytes;
    claim.scope.bytes -= claim.bytes;
    claim.bytes = 0;
    this.#values.remove(claim);
    claim.scope.values.remove(claim);
  }
}

/** Most bytes that the value of a record's result takes in memory. */
export function bytesOf(record: ClaimRecord): number {
  return (record.result?.value?.length ?? 0) * BYTES_PER_CHARACTER;
}
