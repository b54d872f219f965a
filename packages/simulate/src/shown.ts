import { formatDuration } from 'headgate';

const LONGEST = 80;
/** Control characters, marks that change the direction of text, broken pairs: a terminal or a page would obey them. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\\]/gu;
/** JSON itself escapes lower characters. */
const CONTROLS = /[\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;
/** The latest moment that a Date can express. */
const LAST_MOMENT = 8_640_000_000_000_000;
const UNITS = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'm'],
  [1_000, 's'],
] as const;

/** A name for a report: one line, without characters that change the text around it. */
export function shownName(name: string): string {
  const cut = name.length > LONGEST ? `${name.slice(0, LONGEST)}…` : name;
  return cut.replace(UNPRINTABLE, (character) =>
    character === '\\' ? '\\\\' : `\\u{${(character.codePointAt(0) as number).toString(16)}}`,
  );
}

/** JSON without characters that a terminal would obey. */
export function shownJson(value: object): string {
  return JSON.stringify(value, undefined, 2).replace(
    CONTROLS,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** A time in UTC, to the second. */
export function shownTime(ms: number | undefined): string {
  if (ms === undefined) return '-';
  if (Math.abs(ms) > LAST_MOMENT) return String(ms);
  return `${new Date(ms).toISOString().slice(0, 19).replace('T', ' ')}Z`;
}

/** A time span in its two largest units. */
export function shownSpan(ms: number): string {
  if (ms < 1_000) return formatDuration(Math.max(1, Math.round(ms)));
  let left = Math.round(ms / 1_000) * 1_000;
  const parts: string[] = [];
  for (const [unit, letter] of UNITS) {
    const count = Math.floor(left / unit);
    left -= count * unit;
    if (count > 0) parts.push(`${count}${letter}`);
  }
  return parts.slice(0, 2).join(' ');
}

/** A part of a whole, such as `12.3 %`. Above 0 it is never shown as 0, and below 1 never as 100. */
export function shownShare(part: number): string {
  const percent = part * 100;
  if (percent > 0 && percent < 0.001) return '< 0.001 %';
  if (percent < 100 && percent > 99.99) return '> 99.99 %';
  return `${Number(percent.toPrecision(3))} %`;
}

/** A number with a comma for each three digits. */
export function shownNumber(value: number): string {
  return String(value).replace(/\B(?=(\d{3})+$)/g, ',');
}
