import type { Cost } from 'headgate';
import type { Groups } from 'headgate/limits';
import type { LineCursor } from './line-cursor.ts';
import type { SkipReason } from './trace.ts';

/** A parser's result for one line. */
export type ParsedLine = ReadEvent | SkipReason | 'change';

/** An event, with further fields of its line. One shape for all, because there are millions. */
export interface ReadEvent {
  /** Undefined for a settlement. */
  account: string;
  route: string;
  at: number;
  order: number;
  provider: string | undefined;
  plan: string | undefined;
  lane: string | undefined;
  groups: Groups | undefined;
  cost: Cost | undefined;
  logged: 'accepted' | 'rejected' | undefined;
  id: string | undefined;
  settles: string | undefined;
  isExact: boolean;
}

/** Reads the current line; undefined if it is not of its format. */
export type LineParser = (lines: LineCursor) => ParsedLine | undefined;

/** Names that were seen before, so that each is stored once and no line stays in memory because of a part of it. */
export class Names {
  readonly #names = new Map<string, string>();

  get(name: string): string {
    const known = this.#names.get(name);
    if (known !== undefined) return known;
    if (this.#names.size >= MAX_NAMES) this.#names.clear();
    // A part of a text keeps the whole text in memory. The copy does not.
    const copy = JSON.parse(JSON.stringify(name)) as string;
    this.#names.set(copy, copy);
    return copy;
  }
}

const MAX_NAMES = 100_000;
