import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';

/** The route of the row with the windows that all routes of an account share. */
export const ZERO = '00000000-0000-0000-0000-000000000000';

const digests = /* @__PURE__ */ new LRUCache<string, string>({ max: 10_000, maxSize: 4_000_000, sizeCalculation });

function sizeCalculation(_: string, text: string): number {
  return text.length + 1;
}

/**
 * An account or a route as a uuid: 128 bits of SHA-256, so that two of them never share a row. Of UTF-16, because UTF-8
 * encodes all lone surrogates alike.
 */
export function digest(text: string): string {
  let known = digests.get(text);
  if (known === undefined) {
    known = createHash('sha256').update(text, 'utf16le').digest('hex').slice(0, 32);
    digests.set(text, known);
  }
  return known;
}

/** A list as PostgreSQL reads it. Its elements need no quotes. */
export function arrayOf(values: readonly (string | number | boolean)[]): string {
  return `{${values.join()}}`;
}

/** A text that PostgreSQL can store: JSON escapes NUL and lone surrogates, which PostgreSQL's text cannot contain. */
export function toText(value: string | undefined): string | null {
  return value === undefined ? null : JSON.stringify(value);
}

export function fromText(text: string | null | undefined): string | undefined {
  return text === null || text === undefined ? undefined : JSON.parse(text);
}
