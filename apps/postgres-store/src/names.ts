import { createHash } from 'node:crypto';

/** Distinguishes any two strings. UTF-8 would not: it has one code for all lone surrogates. */
export const digest = (text: string): Buffer => createHash('sha256').update(text, 'utf16le').digest();

/** Distinguishes any two lists of digests of one length. */
export const digestOf = (parts: readonly Buffer[]): Buffer =>
  createHash('sha256').update(Buffer.concat(parts)).digest();

/** The lock of what these digests name. Two names with the same lock only wait for each other. */
export const lockOf = (...digests: readonly Buffer[]): string =>
  digests.reduce((lock, each) => lock ^ each.readBigInt64BE(), 0n).toString();

/** A text that PostgreSQL can hold: JSON escapes NUL and lone surrogates, which its own text cannot have. */
export const toText = (value: string | undefined): string | null =>
  value === undefined ? null : JSON.stringify(value);

export const fromText = (text: string | null): string | undefined => (text === null ? undefined : JSON.parse(text));
