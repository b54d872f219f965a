import { digestText } from 'headgate/internal';
import type { ClaimView } from 'headgate/stores';

/**
 * Names a claim to the program that executes its request. It is not secret, and not signed: a key reaches only claims of
 * its own application.
 */
export interface ClaimHandle {
  readonly key: string;
  readonly generation: number;
  /** Whose settings apply. */
  readonly route: string;
  /** Digest of the fingerprint: the same key may belong to another request by now. */
  readonly request: string;
}

/** Longest handle, in characters. Key and route are short. */
export const MAX_HANDLE = 8_192;

/** @param fingerprint of the request */
export function handleOf({ key, generation, route }: Omit<ClaimHandle, 'request'>, fingerprint: string): string {
  return Buffer.from(JSON.stringify([key, generation, route, digestText(fingerprint)])).toString('base64url');
}

/** Undefined if the text is not a handle. */
export function readHandle(text: string): ClaimHandle | undefined {
  try {
    const [key, generation, route, request] = JSON.parse(Buffer.from(text, 'base64url').toString()) as unknown[];
    if (typeof key !== 'string' || key === '' || !Number.isSafeInteger(generation)) return undefined;
    if (typeof route !== 'string' || typeof request !== 'string') return undefined;
    return { key, generation: generation as number, route, request };
  } catch {
    return undefined;
  }
}

/** Whether a claim is still about the request of the handle. */
export function isSameRequest({ request }: ClaimHandle, { fingerprint }: ClaimView): boolean {
  return digestText(fingerprint) === request;
}
