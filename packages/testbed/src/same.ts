import { isDeepStrictEqual } from 'node:util';
import { expect } from 'vitest';

/** `toStrictEqual` for loops of many thousand comparisons: `expect` is asked only if they differ, because it is slow. */
export function expectSame(actual: unknown, expected: unknown, message?: string): void {
  if (!isDeepStrictEqual(actual, expected)) expect(actual, message).toStrictEqual(expected);
}

/** Equal bytes of one type, in one step: `expect` itself compares them one by one. Undefined leaves the answer to `expect`. */
export function sameBytes(a: unknown, b: unknown): true | undefined {
  if (!(a instanceof Uint8Array && b instanceof Uint8Array) || a.constructor !== b.constructor) return undefined;
  return Buffer.compare(a, b) === 0 || undefined;
}
