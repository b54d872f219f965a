import type { ClaimRecord } from '../../core/claim.ts';
import type { Claim } from './claim-table.ts';

/** What a character takes at most: V8 holds a string in one byte or in two a character, and does not say in which. */
const BYTES_PER_CHARACTER = 2;

/** The values of results, oldest first: a linked list through the claims themselves, since a Map is slow at giving up its first entry again and again. */
export class KeptResults {
  #oldest: Claim | undefined;
  #newest: Claim | undefined;
  #bytes = 0;

  get bytes(): number {
    return this.#bytes;
  }

  get oldest(): Claim | undefined {
    return this.#oldest;
  }

  /** Notes the value of a claim that was just completed; one without a value is none of ours. */
  add(claim: Claim): void {
    const bytes = bytesOf(claim.record);
    if (bytes === 0) return;
    claim.bytes = bytes;
    claim.older = this.#newest;
    if (this.#newest === undefined) this.#oldest = claim;
    else this.#newest.newer = claim;
    this.#newest = claim;
    this.#bytes += bytes;
  }

  /** Forgets the claim's value here; the record is the caller's affair. */
  remove(claim: Claim): void {
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

/** Most bytes that the value of a record's result takes. */
export function bytesOf(record: ClaimRecord): number {
  return (record.result?.value?.length ?? 0) * BYTES_PER_CHARACTER;
}
