import type { WindowStatus } from 'headgate';
import type { z } from 'zod';
import { nextTurn } from '../base/slices.ts';
import type { windowState } from './schemas.ts';

/** What is shown of a window. */
export type ShownWindow = Pick<
  WindowStatus,
  'limit' | 'max' | 'remaining' | 'durationMs' | 'resetMs' | 'unit' | 'group'
>;

/** A window in the form of answers. */
export function stateOf({
  limit,
  max,
  remaining,
  durationMs,
  resetMs,
  unit,
  group,
}: ShownWindow): z.input<typeof windowState> {
  const state = { limit, max, used: max - remaining, remaining, durationMs, resetMs };
  return { ...state, ...(unit !== undefined && { unit }), ...(group !== undefined && { group }) };
}

/** Peeks that are under way at a time for one request. */
const AT_ONCE = 8;

/** Peeks for each item, a few at a time, so that one request does not keep the store busy. */
export async function peekEach<Item, Peeked>(
  items: readonly Item[],
  peek: (item: Item) => Promise<Peeked>,
): Promise<Peeked[]> {
  const all: Peeked[] = [];
  for (let i = 0; i < items.length; i += AT_ONCE) {
    all.push(...(await Promise.all(items.slice(i, i + AT_ONCE).map(peek))));
    // A store in memory answers at once, so nothing else would run until the last one.
    await nextTurn();
  }
  return all;
}

/** With two decimals. */
export function rounded(value: number): number {
  return Math.round(100 * value) / 100;
}
