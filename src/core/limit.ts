import { LimitError } from '../base/errors.ts';
import { formatDuration, parseDuration } from './duration.ts';

/** A rolling fixed window: at most `max` in `durationMs` milliseconds from the first accepted request (S4). */
export interface LimitWindow {
  /** Total cost of the requests that fit: a non-negative safe integer. 0 rejects every request (S9). */
  readonly max: number;
  /** Length of the window in milliseconds: a positive safe integer. */
  readonly durationMs: number;
}

/** Which of a route's two limits: its own (`route`), or the limit of every route (`all-methods`) (S1). */
export type LimitName = 'route' | 'all-methods';

/** `'60/1m'` or `{ max: 60, durationMs: 60_000 }`. */
export type WindowInput = string | LimitWindow;

/** A limit as the user writes it: its windows in any order. An empty list means that there is no such limit. */
export type LimitInput = readonly WindowInput[];

/** A validated limit: the windows sorted by duration, shortest first. No two durations are equal (S2, S3). */
export type Limit = readonly LimitWindow[];

const PATTERN = /^(0|[1-9]\d*)\/(.+)/s;

/**
 * Parses and validates a limit (S3).
 * @param place name of the limit in error messages, e.g. `limits.allMethods`
 * @throws LimitError that names the place and the value
 */
export function parseLimit(input: LimitInput, place = 'limit'): Limit {
  if (!Array.isArray(input)) {
    throw new LimitError(place, input, 'a limit is an array of windows such as ["60/1m", "5000/1d"]');
  }
  const windows = input.map((window, index) => parseWindow(window, `${place}[${index}]`));
  windows.sort((a, b) => a.durationMs - b.durationMs);
  for (let i = 1; i < windows.length; i++) {
    const window = windows[i] as LimitWindow;
    if (window.durationMs === (windows[i - 1] as LimitWindow).durationMs) {
      throw new LimitError(
        place,
        formatDuration(window.durationMs),
        'two windows of one limit need distinct durations',
      );
    }
  }
  return Object.freeze(windows);
}

/** Parses one window; see {@link parseLimit}. */
export function parseWindow(input: WindowInput, place = 'window'): LimitWindow {
  const { max, durationMs } = typeof input === 'string' ? fromText(input, place) : fromObject(input, place);
  if (!Number.isSafeInteger(max) || max < 0) throw new LimitError(place, max, 'max must be a non-negative integer');
  if (!Number.isSafeInteger(durationMs) || durationMs <= 0) {
    throw new LimitError(place, durationMs, 'durationMs must be a positive integer of milliseconds');
  }
  return Object.freeze({ max, durationMs });
}

/** Converts `{ max: 60, durationMs: 60_000 }` to `'60/1m'`. */
export function formatWindow(window: LimitWindow): string {
  return `${window.max}/${formatDuration(window.durationMs)}`;
}

function fromText(text: string, place: string): LimitWindow {
  const match = PATTERN.exec(text);
  if (!match) throw new LimitError(place, text, 'a window is max/duration, such as "60/1m"');
  return { max: Number(match[1]), durationMs: parseDuration(match[2] as string, place) };
}

function fromObject(input: LimitWindow, place: string): LimitWindow {
  if (typeof input !== 'object' || input === null) {
    throw new LimitError(place, input, 'a window is "60/1m" or { max, durationMs }');
  }
  return input;
}
