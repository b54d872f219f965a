/**
 * Rolling fixed windows (S4). Each is two numbers in a flat array: when its instance started, and its count. A store
 * has millions of windows, so a flat array saves an object per window and an allocation per check. All counters use one
 * array type, because the rule is the hot path: machine code for one type is three times as fast as for two.
 */
export type Counters = Float64Array;

/** How many numbers a window uses in {@link Counters}: `[startedAt, count]`. */
export const SLOTS_PER_WINDOW = 2;

/** `startedAt` of a window without an instance. Such a window is over at any time. */
export const NEVER = Number.NEGATIVE_INFINITY;

/**
 * Whether the instance that started at `startedAt` is over: true from `startedAt + durationMs` on (S4), and also before
 * `startedAt`. Then the clock was set back, and waiting for the instance would take longer than its duration (S15).
 */
export function isOver(startedAt: number, durationMs: number, now: number): boolean {
  return now >= startedAt + durationMs || now < startedAt;
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
  // A subtraction, because count + cost can exceed the safe integers. The result is negative if the max was lowered
  // below the count (S10).
  return cost <= max - count;
}

/** Adds `cost` to the active instance, or to a new one that starts now (S4). Returns whether one was started. */
export function add(counters: Counters, at: number, durationMs: number, cost: number, now: number): boolean {
  if (isOver(counters[at] as number, durationMs, now)) {
    counters[at] = now;
    counters[at + 1] = cost;
    return true;
  }
  (counters[at + 1] as number) += cost;
  return false;
}

/**
 * Adds `cost` to the active instance, or to a new one that starts now, also if it does not fit. The count stays a safe
 * integer.
 */
export function addBeyond(counters: Counters, at: number, durationMs: number, cost: number, now: number): void {
  if (isOver(counters[at] as number, durationMs, now)) add(counters, at, durationMs, cost, now);
  else counters[at + 1] = Math.min(Number.MAX_SAFE_INTEGER, (counters[at + 1] as number) + cost);
}

/**
 * Adds `change` to the count of the instance that started at `startedAt`, if that instance is still active (S13). A
 * refund is a negative change. The count can exceed the max of the window, but stays a safe integer, 0 or more. The
 * instance stays active even if its count becomes 0. Returns whether the instance was still active.
 * @param undone when the decision was made that is undone: the instance is removed if it started then, and nothing else
 * is counted in it
 */
export function settleWindow(
  counters: Counters,
  at: number,
  durationMs: number,
  startedAt: number,
  change: number,
  now: number,
  undone?: number,
): boolean {
  if (counters[at] !== startedAt || isOver(startedAt, durationMs, now)) return false;
  const count = Math.min(Number.MAX_SAFE_INTEGER, Math.max(0, (counters[at + 1] as number) + change));
  if (count === 0 && startedAt === undone) counters[at] = NEVER;
  counters[at + 1] = count;
  return true;
}
