import { availableParallelism, loadavg } from 'node:os';
import { vi } from 'vitest';

/**
 * @returns a deadline that a quiet machine keeps. On a busy one it is longer: of five programs on one processor, each takes
 * five times as long.
 */
export function patient(ms: number): number {
  const [load = 0] = loadavg();
  return ms * Math.max(1, (2 * load) / availableParallelism());
}

/** `vi.waitFor`, whose own deadline of a second is too short for a busy machine. */
export function waitFor<Result>(
  check: () => Result | Promise<Result>,
  options: { readonly timeout?: number; readonly interval?: number } = {},
): Promise<Result> {
  return vi.waitFor(check, { timeout: 30_000, ...options });
}
