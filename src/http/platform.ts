import { Buffer } from 'node:buffer';
import crypto from 'node:crypto';

/**
 * Everything that this room takes from Node: the rest of it runs on Web APIs alone. In the package it stands behind `#platform`, where a runtime
 * that is not Node finds `platform-web.ts` instead; a test holds the two against each other.
 */

/** A digest under way: SHA-256, or HMAC-SHA-256 where there is a secret. */
export interface Digest {
  /** Text counts as UTF-8. */
  update(data: Uint8Array | string): unknown;
  /** 32 bytes; once. */
  digest(): Uint8Array;
}

/** Synchronous and incremental, which Web Crypto is not. */
export function createDigest(secret?: string | Uint8Array): Digest {
  return secret === undefined ? crypto.createHash('sha256') : crypto.createHmac('sha256', secret);
}

/** Digest of a text, in base64 for URLs. In one call where the runtime has one: most texts are short. */
export function digestText(text: string, secret?: string | Uint8Array): string {
  if (secret === undefined && crypto.hash !== undefined) return crypto.hash('sha256', text, 'base64url');
  const digest = secret === undefined ? crypto.createHash('sha256') : crypto.createHmac('sha256', secret);
  return digest.update(text).digest('base64url');
}

/** Position of a pattern, or -1. Native: searching must cost little beside hashing, and no pattern may make it quadratic. */
export function indexOf(bytes: Uint8Array, pattern: Uint8Array, from: number): number {
  return view(bytes).indexOf(pattern, from);
}

/** One character for each byte, so that nothing is lost. */
export function latin1(bytes: Uint8Array): string {
  return view(bytes).toString('latin1');
}

/** The bytes of a text that has one character for each, as {@link latin1} makes it. */
export function bytesOfLatin1(text: string): Uint8Array {
  return Buffer.from(text, 'latin1');
}

/** Base64 in the alphabet for URLs, not padded. */
export function base64url(bytes: Uint8Array): string {
  return view(bytes).toString('base64url');
}

/** Base64 as in RFC 4648, padded. Native: in a loop of ours a mebibyte would hold everybody up for a tenth of a second. */
export function base64(bytes: Uint8Array): string {
  return view(bytes).toString('base64');
}

/** Bytes of {@link base64}; undefined where the text is none. */
export function fromBase64(text: string): Uint8Array | undefined {
  if (text.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(text)) return undefined;
  const { buffer, byteOffset, byteLength } = Buffer.from(text, 'base64');
  return new Uint8Array(buffer, byteOffset, byteLength);
}

function view(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
