/**
 * Rolling fixed windows (S4), each as two numbers in a flat array: when its instance started and how much it has counted.
 * Flat, because a store holds millions of them: no object a window, no allocation a check. One kind of array, because the
 * rule is the hot path, and machine code for one kind is three times as fast as for two.
 */
export type Counters = Float64Array;

/** Numbers that a window takes in {@link Counters}: `[startedAt, count]`. */
export const SLOTS_PER_WINDOW = 2;

/** `startedAt` of a window that has never had an instance: over at any time. */
export const NEVER = Number.NEGATIVE_INFINITY;

/** Whether the instance that began at `startedAt` is over: from `startedAt + durationMs` on, that millisecond included (S4). */
export function isOver(startedAt: number, durationMs: number, now: number): boolean {
  return now >= startedAt + durationMs;
}

/** Whether `cost` more fits into the window at `counters[at]` (S11). */
export function fits(
  counters: Counters,
  at: number,
  max: number,
  durationMs: number,
  cost: number,
  now: number,
): boolean {
  const count = isOver(counters[at] as number, durationMs, now) ? 0 : (counters[at + 1] as number);
  // A subtraction, since count + cost can leave the safe integers; negative after the max was lowered below the count (S10).
  return cost <= max - count;
}

/** Counts `cost`: in the active instance without moving it, else in a new one that starts now (S4). Returns whether one was started. */
export function add(counters: Counters, at: number, durationMs: number, cost: number, now: number): boolean {
  if (isOver(counters[at] as number, durationMs, now)) {
    counters[at] = now;
    counters[at + 1] = cost;
    return true;
  }
  (counters[at + 1] as number) += cost;
  return false;
}

/** Takes `cost` back from the instance that began at `startedAt`, if it is still the active one (S13). The instance stays, also at a count of 0. */
export function takeBack(
  counters: Counters,
  at: number,
  durationMs: number,
  startedAt: number,
  cost: number,
  now: number,
): boolean {
  if (counters[at] !== startedAt || isOver(startedAt, durationMs, now)) return false;
  counters[at + 1] = Math.max(0, (counters[at + 1] as number) - cost);
  return true;
}
