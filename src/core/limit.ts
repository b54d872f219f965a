import { LimitError } from '../base/errors.ts';
import { checkOptions } from '../base/options.ts';
import { formatDuration, parseDuration } from './duration.ts';
import { isUnit, REQUESTS } from './unit.ts';

/** A rolling fixed window: at most `max` in `durationMs` milliseconds from the first accepted request (S4). */
export interface LimitWindow {
  /** Total cost of the requests that fit: a non-negative safe integer. 0 rejects every request (S9). */
  readonly max: number;
  /** Length of the window in milliseconds: a positive safe integer. */
  readonly durationMs: number;
  /**
   * What the window counts, such as `tokens`: up to 32 lower-case letters, digits, `_` and `-`, with a letter first (S33).
   * @default requests
   */
  readonly unit?: string | undefined;
  /**
   * Its name in the fields `RateLimit-Policy` and `RateLimit`, unique in the limit: letters, digits, `.`, `_` and `-`.
   * @default the limit, the unit and the duration: `route-1m`, `all-methods-tokens-1d`
   */
  readonly name?: string | undefined;
}

/** A window with a name: `{ name: 'per-minute', window: '60/1m' }`. See `name` of {@link LimitWindow}. */
export interface NamedWindowInput {
  readonly name: string;
  readonly window: string | LimitWindow;
}

/** Which of a route's two limits: its own (`route`), or the limit of every route (`all-methods`) (S1). */
export type LimitName = 'route' | 'all-methods';

/** `'60/1m'`, `'30000 tokens/1m'`, `{ max: 60, durationMs: 60_000 }` or `{ name: 'per-minute', window: '60/1m' }`. */
export type WindowInput = string | LimitWindow | NamedWindowInput;

/** A limit as the user writes it: its windows in any order. An empty list means that there is no such limit. */
export type LimitInput = readonly WindowInput[];

/**
 * A validated limit: the windows sorted by duration, shortest first. No two windows of a unit have equal durations (S2,
 * S3).
 */
export type Limit = readonly LimitWindow[];

/** An object that is being made. */
export type Writable<T> = { -readonly [Field in keyof T]: T[Field] };

const PATTERN = /^(0|[1-9]\d*)(?: ([^\s/]+))?\/(.+)/s;
const NAME = /^[A-Za-z0-9][\w.-]{0,63}$/;
/** The names of windows without one; so two windows of one answer never have the same name. */
const RESERVED_NAME = /^(route|all-methods)-/;

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
  windows.sort((a, b) => a.durationMs - b.durationMs || ((a.unit ?? '') < (b.unit ?? '') ? -1 : 1));
  for (let i = 1; i < windows.length; i++) {
    const { durationMs, unit } = windows[i] as LimitWindow;
    const before = windows[i - 1] as LimitWindow;
    if (durationMs === before.durationMs && unit === before.unit) {
      const of = unit === undefined ? '' : ` with the unit ${unit}`;
      const reason = `two windows of one limit${of} need distinct durations`;
      throw new LimitError(place, formatDuration(durationMs), reason);
    }
  }
  const names = windows.flatMap(({ name }) => name ?? []);
  const twice = names.find((name, at) => names.indexOf(name) < at);
  if (twice !== undefined) throw new LimitError(place, twice, 'two windows of one limit need distinct names');
  return Object.freeze(windows);
}

/** Parses one window; see {@link parseLimit}. */
export function parseWindow(input: WindowInput, place = 'window'): LimitWindow {
  if (typeof input === 'object' && input !== null && 'window' in input) {
    checkOptions(input, ['name', 'window'], place);
    return Object.freeze({ ...parseWindow(input.window, `${place}.window`), name: checkName(input.name, place) });
  }
  const { max, durationMs, unit, name } = typeof input === 'string' ? fromText(input, place) : fromObject(input, place);
  if (!Number.isSafeInteger(max) || max < 0) throw new LimitError(place, max, 'max must be a non-negative integer');
  if (!Number.isSafeInteger(durationMs) || durationMs <= 0) {
    throw new LimitError(place, durationMs, 'durationMs must be a positive integer of milliseconds');
  }
  // Not spread: an adjustment of one account parses its windows, and would take a tenth longer.
  const window: Writable<LimitWindow> = { max, durationMs };
  if (unit !== undefined && unit !== REQUESTS) window.unit = checkUnit(unit, place);
  if (name !== undefined) window.name = checkName(name, place);
  return Object.freeze(window);
}

function checkUnit(unit: unknown, place: string): string {
  if (isUnit(unit)) return unit;
  const reason = 'a unit has up to 32 lower-case letters, digits, "_" and "-", with a letter first';
  throw new LimitError(`${place}.unit`, unit, reason);
}

function checkName(name: unknown, place: string): string {
  if (typeof name !== 'string' || !NAME.test(name))
    throw new LimitError(`${place}.name`, name, 'a name has up to 64 letters, digits, ".", "_" and "-"');
  if (RESERVED_NAME.test(name))
    throw new LimitError(`${place}.name`, name, 'names that begin with "route-" or "all-methods-" are reserved');
  return name;
}

/** Converts `{ max: 60, durationMs: 60_000 }` to `'60/1m'`. */
export function formatWindow({ max, unit, durationMs }: LimitWindow): string {
  return `${max}${unit === undefined ? '' : ` ${unit}`}/${formatDuration(durationMs)}`;
}

function fromText(text: string, place: string): LimitWindow {
  const match = PATTERN.exec(text);
  if (!match) throw new LimitError(place, text, 'a window is max/duration, such as "60/1m"');
  return { max: Number(match[1]), unit: match[2], durationMs: parseDuration(match[3] as string, place) };
}

function fromObject(input: LimitWindow, place: string): LimitWindow {
  if (typeof input !== 'object' || input === null) {
    throw new LimitError(place, input, 'a window is "60/1m" or { max, durationMs }, or { name, window }');
  }
  return input;
}

/** Whether two limits have the same windows. */
export function areEqualLimits(one: Limit | undefined, other: Limit | undefined): boolean {
  return one === other || JSON.stringify(one) === JSON.stringify(other);
}
