import { type Counters, NEVER, SLOTS_PER_WINDOW } from '../../core/window.ts';
import { MARGIN } from './counters.ts';

/** No record. */
export const NOWHERE = -1;

/** Numbers in front of a record's windows: what it is (route and layout), and the next record of the account. */
export const TAG = 0;
export const NEXT = 1;
export const HEADER = 2;

const CHUNK_BITS = 15;
const CHUNK_SIZE = 1 << CHUNK_BITS;
const OFFSET_MASK = CHUNK_SIZE - 1;

/** Most windows that one record can hold. */
export const MAX_WINDOWS = Math.floor((CHUNK_SIZE - HEADER) / SLOTS_PER_WINDOW);

/**
 * Records of numbers in large chunks: no object a key, so that a million keys are 150 bytes each and nothing for the garbage collector
 * to visit. Grows a chunk at a time, never by copying; freed records are used again by records of their size.
 */
export class Slab {
  readonly #chunks: Float64Array[] = [];
  /** First free record by number of windows; the others hang on it by NEXT. */
  readonly #free: number[] = [];
  #end = 0;

  /** The chunk that holds the record; its place in it is {@link offset}. */
  chunk(address: number): Float64Array {
    return this.#chunks[address >>> CHUNK_BITS] as Float64Array;
  }

  offset(address: number): number {
    return address & OFFSET_MASK;
  }

  /** The counters of a record of so many windows: the record's own, not a copy. */
  counters(address: number, windows: number): Counters {
    const first = this.offset(address) + HEADER;
    return this.chunk(address).subarray(first, first + windows * SLOTS_PER_WINDOW);
  }

  /** Reads a record's first windows into those from `from` to `to` (excluded); none of no record. */
  load(address: number, counters: Counters, from: number, to: number): void {
    if (address === NOWHERE) return;
    const chunk = this.chunk(address);
    let at = this.offset(address) + HEADER;
    for (let i = from * SLOTS_PER_WINDOW; i < to * SLOTS_PER_WINDOW; i++) counters[i] = chunk[at++] as number;
  }

  /** The way back of {@link load}. */
  save(address: number, counters: Counters, from: number, to: number): void {
    const chunk = this.chunk(address);
    let at = this.offset(address) + HEADER;
    for (let i = from * SLOTS_PER_WINDOW; i < to * SLOTS_PER_WINDOW; i++) chunk[at++] = counters[i] as number;
  }

  /** A number of the header. */
  read(address: number, field: number): number {
    return this.chunk(address)[(address & OFFSET_MASK) + field] as number;
  }

  write(address: number, field: number, value: number): void {
    this.chunk(address)[(address & OFFSET_MASK) + field] = value;
  }

  /** A record whose windows have never had an instance; its header is the caller's to fill. */
  allocate(windows: number): number {
    const address = this.#reuse(windows) ?? this.#extend(HEADER + windows * SLOTS_PER_WINDOW);
    const first = this.offset(address) + HEADER;
    this.chunk(address).fill(NEVER, first, first + windows * SLOTS_PER_WINDOW);
    return address;
  }

  release(address: number, windows: number): void {
    this.write(address, NEXT, this.#free[windows] ?? NOWHERE);
    this.#free[windows] = address;
  }

  #reuse(windows: number): number | undefined {
    const address = this.#free[windows] ?? NOWHERE;
    if (address === NOWHERE) return undefined;
    this.#free[windows] = this.read(address, NEXT);
    return address;
  }

  #extend(size: number): number {
    let address = this.#end;
    // A record never crosses the edge of a chunk.
    if (this.offset(address) + size > CHUNK_SIZE) address = (address | OFFSET_MASK) + 1;
    if (address >>> CHUNK_BITS >= this.#chunks.length) this.#chunks.push(new Float64Array(CHUNK_SIZE + MARGIN));
    this.#end = address + size;
    return address;
  }
}
