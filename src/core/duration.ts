import { LimitError } from '../base/errors.ts';

const UNITS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
const LARGEST_FIRST = ['d', 'h', 'm', 's', 'ms'] as const;
const PATTERN = /^([1-9]\d*)(ms|s|m|h|d)$/;

/**
 * Converts `'30s'` to milliseconds. The text is a whole number and one unit of `ms`, `s`, `m`, `h`, `d`.
 * Fractions are not accepted, so nothing is ever rounded.
 * @throws LimitError that names `place`
 */
export function parseDuration(text: string, place = 'duration'): number {
  const match = PATTERN.exec(text);
  const durationMs = match ? Number(match[1]) * UNITS[match[2] as keyof typeof UNITS] : Number.NaN;
  if (!Number.isSafeInteger(durationMs)) {
    throw new LimitError(place, text, 'a duration is a whole number and a unit of ms, s, m, h, d, such as "30s"');
  }
  return durationMs;
}

/** Converts milliseconds to the shortest text that {@link parseDuration} accepts: 90,000 is `'90s'`. */
export function formatDuration(durationMs: number): string {
  const unit = LARGEST_FIRST.find((name) => durationMs % UNITS[name] === 0) ?? 'ms';
  return `${durationMs / UNITS[unit]}${unit}`;
}
