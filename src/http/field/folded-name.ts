import { hexValue } from '../parse/hex.ts';

const [NUL, SPACE, PERCENT, DASH, DOT] = [0x00, 0x20, 0x25, 0x2d, 0x2e];
const [UPPER_A, UPPER_Z, OPEN, CLOSE, UNDERSCORE] = [0x41, 0x5a, 0x5b, 0x5d, 0x5f];
/** Code units from here on are not ASCII. */
const WIDE = 0x80;
const WIDE_SPACE = /\s/;
/** A name that folding does not change. */
const PLAIN = /^[a-z0-9_]*$/;
/** Characters that Unicode normalization sorts and combines with the character in front of them. */
const MARKS = /[\p{M}\uff9e\uff9f]+/gu;
/** Most code units that normalization makes one of: 4 characters of 2 code units. */
const MAX_SHRINKING = 8;

/**
 * A field's name as the most lenient servers read it. They ignore case (Go, .NET), turn dots and spaces into
 * underscores (PHP), read brackets as structure (qs, Rails, PHP), or cut the name at a NUL. Two names with the same
 * folded form are the same name to some server.
 */
export class FoldedName {
  readonly #folded: string;

  constructor(name: string) {
    this.#folded = fold(name);
  }

  /** Whether the folded form of `candidate` is the same. Its time is linear in the length of the candidate. */
  matches(candidate: string): boolean {
    const folded = this.#folded;
    return (
      isFoldedTo(folded, candidate, false) ?? isFoldedTo(folded, normalize(candidate, folded.length), true) ?? false
    );
  }
}

function fold(name: string): string {
  if (PLAIN.test(name)) return name;
  return normalize(name, name.length)
    .replace(/^[\s[]+/, '')
    .replace(/[[\]\0].*$/s, '')
    .trim()
    .replace(/[\s.-]/g, '_');
}

/**
 * Decodes escapes, and makes one spelling of the spellings of a character, and lower case. A run of marks that is too
 * long for a name of `length` code units ends the text: sorting the marks of a run takes a time that is quadratic in
 * its length.
 */
function normalize(name: string, length: number): string {
  const decoded = decodePercent(name);
  return withoutLongRuns(decoded, MAX_SHRINKING * (length + 1))
    .normalize('NFKC')
    .toLowerCase();
}

function withoutLongRuns(text: string, maxRun: number): string {
  if (text.length <= maxRun) return text;
  for (const { 0: run, index } of text.matchAll(MARKS)) if (run.length > maxRun) return text.slice(0, index + maxRun);
  return text;
}

function decodePercent(name: string): string {
  let decoded = '';
  let from = 0;
  for (let at = name.indexOf('%'); at !== -1; at = name.indexOf('%', at + 1)) {
    const high = hexValue(name.charCodeAt(at + 1));
    const low = hexValue(name.charCodeAt(at + 2));
    if (high === -1 || low === -1) continue;
    decoded += name.slice(from, at) + String.fromCharCode(16 * high + low);
    from = at + 3;
    at = from - 1;
  }
  return decoded + name.slice(from);
}

/**
 * Compares in one pass, without folding the text first.
 * @param isNormalized whether the text is in its final spelling
 * @returns undefined if it must be normalized first: what was seen does not decide
 */
function isFoldedTo(folded: string, text: string, isNormalized: boolean): boolean | undefined {
  let start = 0;
  while (start < text.length && (text.charCodeAt(start) === OPEN || isSpace(text.charCodeAt(start)))) start++;
  /** Length up to the last character that is not a space: spaces at the end do not count. */
  let length = 0;
  let mismatch = false;
  for (let at = start; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (!isNormalized && isUnclear(unit)) return undefined;
    if (unit === OPEN || unit === CLOSE || unit === NUL) break;
    if (foldedUnit(unit) !== folded.charCodeAt(at - start)) mismatch = true;
    if (isSpace(unit)) continue;
    // The next character may be a mark that belongs to this one.
    if (mismatch) return !isNormalized && isUnclear(text.charCodeAt(at + 1)) ? undefined : false;
    length = at - start + 1;
  }
  return length === folded.length;
}

/** Whether normalization may change the character, or the one in front of it. */
function isUnclear(unit: number): boolean {
  return unit >= WIDE || unit === PERCENT;
}

function foldedUnit(unit: number): number {
  if (unit >= UPPER_A && unit <= UPPER_Z) return unit | SPACE;
  return unit === DOT || unit === DASH || isSpace(unit) ? UNDERSCORE : unit;
}

function isSpace(unit: number): boolean {
  if (unit < WIDE) return unit === SPACE || (unit >= 0x09 && unit <= 0x0d);
  return WIDE_SPACE.test(String.fromCharCode(unit));
}
