import { createHash } from 'node:crypto';

/** Distinguishes any two strings. UTF-8 would not: it encodes all lone surrogates alike. */
export const digest = (text: string): Buffer => createHash('sha256').update(text, 'utf16le').digest();

/** Distinguishes any two lists of digests of one length. */
export const digestOf = (parts: readonly Buffer[]): Buffer =>
  createHash('sha256').update(Buffer.concat(parts)).digest();

/** The lock of the names behind these digests. Two names with the same lock only wait for each other. */
export const lockOf = (...digests: readonly Buffer[]): string =>
  digests.reduce((lock, each) => lock ^ each.readBigInt64BE(), 0n).toString();

/** A text that PostgreSQL can store: JSON escapes NUL and lone surrogates, which PostgreSQL's text cannot contain. */
export const toText = (value: string | undefined): string | null =>
  value === undefined ? null : JSON.stringify(value);

export const fromText = (text: string | null): string | undefined => (text === null ? undefined : JSON.parse(text));
