import { availableParallelism } from 'node:os';
import type { Config } from './schema.ts';

/** The number of processes with connections to the store: with an Admin API, the primary has some as well. */
export function storeProcessesOf({ workers, admin }: Pick<Config, 'workers' | 'admin'>): number {
  const serving = workersOf({ workers });
  return serving > 1 && (admin?.tokens.length ?? 0) > 0 ? serving + 1 : serving;
}

/** The number of serving processes. With 1 there is no primary. */
export function workersOf({ workers }: Pick<Config, 'workers'>): number {
  return workers === 'auto' ? availableParallelism() : workers;
}
