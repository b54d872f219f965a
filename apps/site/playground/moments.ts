/** Moments and spans of time, for people. */

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** How much time the timeline can show. */
export const SPANS: readonly { readonly ms: number; readonly name: string }[] = [
  { ms: 2 * SECOND, name: '2 seconds' },
  { ms: 10 * SECOND, name: '10 seconds' },
  { ms: 30 * SECOND, name: '30 seconds' },
  { ms: MINUTE, name: '1 minute' },
  { ms: 2 * MINUTE, name: '2 minutes' },
  { ms: 5 * MINUTE, name: '5 minutes' },
  { ms: 15 * MINUTE, name: '15 minutes' },
  { ms: HOUR, name: '1 hour' },
  { ms: 6 * HOUR, name: '6 hours' },
  { ms: DAY, name: '1 day' },
  { ms: 3 * DAY, name: '3 days' },
  { ms: 7 * DAY, name: '7 days' },
  { ms: 30 * DAY, name: '30 days' },
  { ms: 366 * DAY, name: '1 year' },
];

const UNITS = [
  ['d', DAY],
  ['h', HOUR],
  ['min', MINUTE],
] as const;

/** `1 min 2.5 s`. A moment is a duration since the start of the timeline. */
export function formatMs(ms: number): string {
  const parts: string[] = [];
  let rest = ms;
  for (const [unit, size] of UNITS) {
    const count = Math.floor(rest / size);
    if (count > 0) parts.push(`${count} ${unit}`);
    rest -= count * size;
  }
  if (rest > 0 || parts.length === 0) parts.push(`${rest / SECOND} s`);
  return parts.join(' ');
}

const NICE = [1, 2, 5, 10, 15, 30]
  .flatMap((n) => [n, n * SECOND, n * MINUTE])
  .concat(
    [100, 200, 500],
    [1, 2, 3, 6, 12].map((n) => n * HOUR),
    [1, 2, 7, 30, 90].map((n) => n * DAY),
  );
const ASCENDING = [...new Set(NICE)].sort((a, b) => a - b);

/** The smallest nice step that divides a span into at most `parts`. */
export const niceStep = (spanMs: number, parts: number): number =>
  ASCENDING.find((step) => spanMs / step <= parts) ?? (ASCENDING.at(-1) as number);

/** The steps in which time is moved and requests are sent. */
export const stepOf = (spanMs: number): number => niceStep(spanMs, 300);

/** The moments that the axis names. */
export function ticks(spanMs: number, parts: number): readonly number[] {
  const step = niceStep(spanMs, parts);
  return Array.from({ length: Math.floor(spanMs / step) + 1 }, (_, index) => index * step);
}
