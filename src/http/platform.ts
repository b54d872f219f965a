import { Buffer } from 'node:buffer';
import crypto from 'node:crypto';

/**
 * Everything that this folder uses of Node; the rest of it needs only Web APIs. The build replaces imports of this file
 * by `#platform`. In package.json, `#platform` is this file for Node, and `platform-web.ts` for every other runtime. A
 * test compares the two files.
 */

/** An incremental digest: SHA-256, or HMAC-SHA-256 if there is a secret. */
export interface Digest {
  /** Text is encoded as UTF-8. */
  update(data: Uint8Array | string): unknown;
  /** Returns 32 bytes. Call it once. */
  digest(): Uint8Array;
}

/** Node's own digest: Web Crypto is neither synchronous nor incremental. */
export function createDigest(secret?: string | Uint8Array): Digest {
  return secret === undefined ? crypto.createHash('sha256') : crypto.createHmac('sha256', secret);
}

/** Digest of a text in URL-safe base64. Most texts are short, so it uses Node's one-call function if it exists. */
export function digestText(text: string, secret?: string | Uint8Array): string {
  if (secret === undefined && crypto.hash !== undefined) return crypto.hash('sha256', text, 'base64url');
  const digest = secret === undefined ? crypto.createHash('sha256') : crypto.createHmac('sha256', secret);
  return digest.update(text).digest('base64url');
}

/**
 * SHA-256 of a few bytes. It uses Node's one-call function if it exists: an incremental digest costs more than they do.
 */
export function digestBytes(bytes: Uint8Array): Uint8Array {
  if (crypto.hash !== undefined) return crypto.hash('sha256', bytes, 'buffer');
  return crypto.createHash('sha256').update(bytes).digest();
}

/** Position of a pattern, or -1. Node's search is cheap compared with hashing, and no pattern makes it quadratic. */
export function indexOf(bytes: Uint8Array, pattern: Uint8Array, from: number): number {
  return view(bytes).indexOf(pattern, from);
}

/** Text with one character per byte, so that nothing is lost. */
export function latin1(bytes: Uint8Array): string {
  return view(bytes).toString('latin1');
}

/** The bytes of a text with one character per byte, as {@link latin1} returns it. */
export function bytesOfLatin1(text: string): Uint8Array {
  return Buffer.from(text, 'latin1');
}

/** URL-safe base64 without padding. */
export function base64url(bytes: Uint8Array): string {
  return view(bytes).toString('base64url');
}

/** Base64 of RFC 4648 with padding. Node's own: a loop in JavaScript would block the process for 0.1 s per MiB. */
export function base64(bytes: Uint8Array): string {
  return view(bytes).toString('base64');
}

/** The inverse of {@link base64}; undefined if the text is not base64. */
export function fromBase64(text: string): Uint8Array | undefined {
  if (text.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(text)) return undefined;
  const { buffer, byteOffset, byteLength } = Buffer.from(text, 'base64');
  return new Uint8Array(buffer, byteOffset, byteLength);
}

/** Lets other work of the process go on. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function view(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
