import { LastMinute } from './last-minute.ts';

/** A name that was counted often. */
export interface Hitter<Note> {
  readonly name: string;
  /** At least how often it was counted, plus at most `error`. */
  readonly count: number;
  /** How much of `count` may be of other names. 0 if the count is exact. */
  readonly error: number;
  /** How often it was counted in the last minute, or so often at least if `error` is not 0. */
  readonly lastMinute: number;
  /** The note of its last count. */
  readonly note: Note;
}

/**
 * Counts the most frequent of any number of names, in bounded memory (Space-Saving, by Metwally, Agrawal and El Abbadi).
 * A new name takes the place of the name with the least count, and inherits that count as its error. So every name that
 * makes up more than 1/size of all counts is in it, and no count is too low. Up to `size` names all counts are exact.
 */
export class HeavyHitters<Note> {
  readonly #slots = new Map<string, number>();
  readonly #names: string[] = [];
  readonly #notes: Note[] = [];
  readonly #counts: Float64Array;
  readonly #errors: Float64Array;
  readonly #lastMinute: LastMinute;
  /** A heap of slots, with the least count on top. */
  readonly #heap: Uint32Array;
  /** The place of each slot in the heap. */
  readonly #places: Uint32Array;

  constructor(readonly size: number) {
    this.#counts = new Float64Array(size);
    this.#errors = new Float64Array(size);
    this.#lastMinute = new LastMinute(size);
    this.#heap = new Uint32Array(size);
    this.#places = new Uint32Array(size);
  }

  /** Whether every count is exact, because each name takes a separate place. */
  isExact = true;

  add(name: string, note: Note, nowMs: number): void {
    const slot = this.#slots.get(name) ?? this.#place(name);
    this.#notes[slot] = note;
    (this.#counts[slot] as number)++;
    this.#lastMinute.add(slot, nowMs);
    this.#sink(slot);
  }

  /** All that is counted, in no order. */
  list(nowMs: number): Hitter<Note>[] {
    return this.#names.map((name, slot) => this.#hitter(name, slot, nowMs));
  }

  /** Undefined if the name is not counted. */
  get(name: string, nowMs: number): Hitter<Note> | undefined {
    const slot = this.#slots.get(name);
    return slot === undefined ? undefined : this.#hitter(name, slot, nowMs);
  }

  /** The most that a name can have been counted that is not in the list. */
  get least(): number {
    return this.isExact ? 0 : (this.#counts[this.#heap[0] as number] as number);
  }

  #hitter(name: string, slot: number, nowMs: number): Hitter<Note> {
    const [count, error] = [this.#counts[slot] as number, this.#errors[slot] as number];
    return { name, count, error, lastMinute: this.#lastMinute.count(slot, nowMs), note: this.#notes[slot] as Note };
  }

  #place(name: string): number {
    const free = this.#names.length;
    if (free < this.size) {
      this.#names.push(name);
      this.#slots.set(name, free);
      this.#move(free, free);
      // Its count is 0, so it belongs on top.
      this.#rise(free);
      return free;
    }
    this.isExact = false;
    const slot = this.#heap[0] as number;
    this.#slots.delete(this.#names[slot] as string);
    this.#slots.set(name, slot);
    this.#names[slot] = name;
    this.#errors[slot] = this.#counts[slot] as number;
    this.#lastMinute.clear(slot);
    return slot;
  }

  #rise(slot: number): void {
    let place = this.#places[slot] as number;
    while (place > 0) {
      const parent = (place - 1) >> 1;
      this.#move(this.#heap[parent] as number, place);
      place = parent;
    }
    this.#move(slot, place);
  }

  #sink(slot: number): void {
    const count = this.#counts[slot] as number;
    const length = this.#names.length;
    let place = this.#places[slot] as number;
    for (;;) {
      let child = 2 * place + 1;
      if (child >= length) break;
      if (child + 1 < length && this.#countAt(child + 1) < this.#countAt(child)) child++;
      if (this.#countAt(child) >= count) break;
      this.#move(this.#heap[child] as number, place);
      place = child;
    }
    this.#move(slot, place);
  }

  #countAt(place: number): number {
    return this.#counts[this.#heap[place] as number] as number;
  }

  #move(slot: number, place: number): void {
    this.#heap[place] = slot;
    this.#places[slot] = place;
  }
}
