import { availableParallelism } from 'node:os';
import type { Config } from './schema.ts';

/** The number of serving processes. With 1 there is no primary. */
export function workersOf({ workers }: Config): number {
  return workers === 'auto' ? availableParallelism() : workers;
}
