import { hmac } from '@noble/hashes/hmac.js';
import { sha256 } from '@noble/hashes/sha2.js';
import { failureTable, nextMatch } from './parse/failure-table.ts';
import type { Digest } from './platform.ts';

/** The functions of `platform.ts`, with the same results, for runtimes with only Web APIs. */

/** Most bytes that are spread into the arguments of one call, because engines limit the number of arguments. */
const PIECE = 8_192;
const encoder = new TextEncoder();

/** Written in JavaScript, because Web Crypto is neither synchronous nor incremental. */
export function createDigest(secret?: string | Uint8Array): Digest {
  const hash = secret === undefined ? sha256.create() : hmac.create(sha256, encoded(secret));
  return { update: (data) => hash.update(encoded(data)), digest: () => hash.digest() };
}

export function digestText(text: string, secret?: string | Uint8Array): string {
  const digest = createDigest(secret);
  digest.update(text);
  return base64url(digest.digest());
}

export function digestBytes(bytes: Uint8Array): Uint8Array {
  return sha256(bytes);
}

/** Linear, whatever the pattern. The native search skips to the next byte at which the pattern may begin. */
export function indexOf(bytes: Uint8Array, pattern: Uint8Array, from: number): number {
  const table = failureTable(pattern);
  const first = pattern[0] as number;
  for (let at = from, matched = 0; at < bytes.length; at++) {
    if (matched === 0) {
      at = bytes.indexOf(first, at);
      if (at < 0) return -1;
    }
    matched = nextMatch(pattern, table, matched, bytes[at] as number);
    if (matched === pattern.length) return at - matched + 1;
  }
  return -1;
}

/** Does not use a `TextDecoder`, whose latin1 is windows-1252. */
export function latin1(bytes: Uint8Array): string {
  let text = '';
  for (let at = 0; at < bytes.length; at += PIECE) text += String.fromCharCode(...bytes.subarray(at, at + PIECE));
  return text;
}

export function bytesOfLatin1(text: string): Uint8Array {
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at);
  return bytes;
}

export function base64url(bytes: Uint8Array): string {
  return base64(bytes).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '');
}

export function base64(bytes: Uint8Array): string {
  return btoa(latin1(bytes));
}

export function fromBase64(text: string): Uint8Array | undefined {
  if (text.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(text)) return undefined;
  return bytesOfLatin1(atob(text));
}

/** Not by `setImmediate`: some runtimes lack it, and the Edge runtime of Next.js throws. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 0));
}

function encoded(data: string | Uint8Array): Uint8Array {
  return typeof data === 'string' ? encoder.encode(data) : data;
}
