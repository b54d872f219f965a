/** How figures, spans and moments are written. */

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
  ['ms', 1],
] as const;

/** The two largest units of a span: `1 h 5 min`, `41 s`. Below a minute it is rounded up to seconds. */
export function spanText(ms: number): string {
  if (ms < 1_000) return `${Math.ceil(ms)} ms`;
  let left = Math.ceil(ms / 1_000) * 1_000;
  const parts: string[] = [];
  for (const [unit, length] of UNITS) {
    const count = Math.floor(left / length);
    left -= count * length;
    if (count > 0) parts.push(`${count} ${unit}`);
  }
  return parts.slice(0, 2).join(' ');
}

/** Who reads `60 per 1 min` counts in minutes: `60 per minute`, `30,000 tokens per minute`. */
export function perText(max: number, durationMs: number, unit?: string): string {
  const one = { 86400000: 'day', 3600000: 'hour', 60000: 'minute', 1000: 'second' }[durationMs];
  return `${unitsText(max, unit)} per ${one ?? spanText(durationMs)}`;
}

/** `5`, `30,000 tokens` */
export function unitsText(count: number, unit?: string): string {
  return unit === undefined ? numberText(count) : `${numberText(count)} ${unit}`;
}

/** `1 request, 800 tokens`. Only requests are a word that the console knows. */
export function costsText(costs: Readonly<Record<string, number>>): string {
  return Object.entries(costs)
    .map(([unit, cost]) => (unit === 'requests' ? countText(cost, 'request') : unitsText(cost, unit)))
    .join(', ');
}

const NUMBERS = new Intl.NumberFormat('en', { maximumFractionDigits: 1 });

export function numberText(value: number): string {
  return NUMBERS.format(value);
}

const TIME = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' });
const DATE = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', year: 'numeric' });

const MINUTE = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' });

/** @param seconds since 1970 */
export function minuteText(seconds: number): string {
  return MINUTE.format(seconds * 1_000);
}

/** In the operator's time zone; with the date if it is not today's. */
export function timeText(moment: string | number | Date): string {
  const date = new Date(moment);
  const isToday = date.toDateString() === new Date().toDateString();
  return isToday ? TIME.format(date) : momentText(date);
}

/** In the operator's time zone, always with the date. */
export function momentText(moment: string | Date): string {
  const date = new Date(moment);
  return `${DATE.format(date)}, ${TIME.format(date)}`;
}

/** A window as it is written in a config, such as `60/1m`. */
export function windowText({
  max,
  durationMs,
  unit,
}: {
  readonly max: number;
  readonly durationMs: number;
  readonly unit?: string | undefined;
}): string {
  const [name, length] = UNITS.find(([, each]) => durationMs % each === 0) ?? ['ms', 1];
  return `${max}${unit === undefined ? '' : ` ${unit}`}/${durationMs / length}${name === 'min' ? 'm' : name}`;
}

/** Windows as they are written in a config. */
export function windowsText(windows: readonly string[] | null): string {
  if (windows === null) return 'no limit';
  return windows.length === 0 ? 'no limit (removed)' : windows.join(', ');
}

/**
 * Name of the limit of a route, or of all of them.
 * @param group whose limit it is; undefined if it is the account's
 */
export function limitName(limit: 'route' | 'all-methods', group?: string): string {
  return `${limit === 'route' ? 'This route' : 'All methods'}${group === undefined ? '' : ` of the group ${group}`}`;
}

/** `1 account`, `3 accounts`. */
export function countText(count: number, one: string, many = `${one}s`): string {
  return `${numberText(count)} ${count === 1 ? one : many}`;
}

/**
 * The change that a process obeys: `change 17`, numbered as in the history. The rest of a revision distinguishes
 * histories.
 */
export function changeText(revision: string): string {
  const version = revision.split('.', 1)[0];
  return version === '0' ? 'as in the config' : `change ${version}`;
}

/** `3 of 4 processes` */
export function processesText({ counted, of }: { readonly counted: number; readonly of: number }): string {
  return `${counted} of ${countText(of, 'process', 'processes')}`;
}

/** The reason of the block that pauses an account after its provider refused (S30). */
export const PAUSE_REASON = 'provider';
