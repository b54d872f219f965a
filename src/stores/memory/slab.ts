import { type Counters, NEVER, SLOTS_PER_WINDOW } from '../../core/window.ts';
import { OVERREAD } from './counters.ts';

/** Address of no record. */
export const NOWHERE = -1;

/**
 * The header of a record consists of two numbers: its tag (route and layout), and the address of the account's next
 * record.
 */
export const TAG = 0;
export const NEXT = 1;
export const HEADER = 2;

const CHUNK_BITS = 15;
const CHUNK_SIZE = 1 << CHUNK_BITS;
const OFFSET_MASK = CHUNK_SIZE - 1;

/** Most windows that fit one record. */
export const MAX_WINDOWS = Math.floor((CHUNK_SIZE - HEADER) / SLOTS_PER_WINDOW);

/**
 * Records of numbers in large chunks. Without an object per key, a million keys take 150 bytes each and the garbage
 * collector finds nothing to visit. The slab grows by one chunk at a time and never copies. A released record is reused
 * by the next record of the same size.
 */
export class Slab {
  readonly #chunks: Float64Array[] = [];
  /** First free record by number of windows; NEXT of each leads to the next one. */
  readonly #free: number[] = [];
  #end = 0;

  /** The chunk in which the record is, at the index {@link offset}. */
  chunk(address: number): Float64Array {
    return this.#chunks[address >>> CHUNK_BITS] as Float64Array;
  }

  offset(address: number): number {
    return address & OFFSET_MASK;
  }

  /** The counters of a record with so many windows. They are the record itself, not a copy. */
  counters(address: number, windows: number): Counters {
    const first = this.offset(address) + HEADER;
    return this.chunk(address).subarray(first, first + windows * SLOTS_PER_WINDOW);
  }

  /** Copies a record's first windows to `counters`, windows `from` to `to` (excluded). Ignores NOWHERE. */
  load(address: number, counters: Counters, from: number, to: number): void {
    if (address === NOWHERE) return;
    const chunk = this.chunk(address);
    let at = this.offset(address) + HEADER;
    for (let i = from * SLOTS_PER_WINDOW; i < to * SLOTS_PER_WINDOW; i++) counters[i] = chunk[at++] as number;
  }

  /** The reverse of {@link load}. */
  save(address: number, counters: Counters, from: number, to: number): void {
    const chunk = this.chunk(address);
    let at = this.offset(address) + HEADER;
    for (let i = from * SLOTS_PER_WINDOW; i < to * SLOTS_PER_WINDOW; i++) chunk[at++] = counters[i] as number;
  }

  /** Reads a number of the header. */
  read(address: number, field: number): number {
    return this.chunk(address)[(address & OFFSET_MASK) + field] as number;
  }

  write(address: number, field: number, value: number): void {
    this.chunk(address)[(address & OFFSET_MASK) + field] = value;
  }

  /** Returns the address of a record whose windows are without an instance. The caller fills in the header. */
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
    // A record never crosses the end of a chunk.
    if (this.offset(address) + size > CHUNK_SIZE) address = (address | OFFSET_MASK) + 1;
    if (address >>> CHUNK_BITS >= this.#chunks.length) this.#chunks.push(new Float64Array(CHUNK_SIZE + OVERREAD));
    this.#end = address + size;
    return address;
  }
}
