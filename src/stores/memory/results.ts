import type { ClaimRecord } from '../../core/claim.ts';
import type { ClaimEntry } from './claim-table.ts';

/** Most bytes per character: V8 stores a string with one or two bytes per character, and does not say which. */
const BYTES_PER_CHARACTER = 2;

/** The stored values, oldest first, as a linked list: a Map is slow at deleting its first entry again and again. */
export class KeptResults {
  #oldest: ClaimEntry | undefined;
  #newest: ClaimEntry | undefined;
  #bytes = 0;

  get bytes(): number {
    return this.#bytes;
  }

  get oldest(): ClaimEntry | undefined {
    return this.#oldest;
  }

  /** Adds a claim that was just completed. Does nothing if its result has no value. */
  add(claim: ClaimEntry): void {
    const bytes = bytesOf(claim.record);
    if (bytes === 0) return;
    claim.bytes = bytes;
    claim.older = this.#newest;
    if (this.#newest === undefined) this.#oldest = claim;
    else this.#newest.newer = claim;
    this.#newest = claim;
    this.#bytes += bytes;
  }

  /** Removes the claim from this list. The caller changes the record. */
  remove(claim: ClaimEntry): void {
    if (claim.bytes === 0) return;
    this.#bytes -= claim.bytes;
    claim.bytes = 0;
    if (claim.older === undefined) this.#oldest = claim.newer;
    else claim.older.newer = claim.newer;
    if (claim.newer === undefined) this.#newest = claim.older;
    else claim.newer.older = claim.older;
    claim.older = undefined;
    claim.newer = undefined;
  }
}

/** Most bytes that the value of a record's result takes in memory. */
export function bytesOf(record: ClaimRecord): number {
  return (record.result?.value?.length ?? 0) * BYTES_PER_CHARACTER;
}
