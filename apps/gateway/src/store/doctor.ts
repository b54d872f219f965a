import type { Config } from '../config/schema.ts';
import { parseStore } from '../config/store-url.ts';
import { type Finding, ok } from './finding.ts';
import { examinePostgres } from './postgres-doctor.ts';
import { examineRedis } from './redis-doctor.ts';

/** Checks the store of a config: whether it can be reached, and whether it offers all that the gateway needs. */
export async function examineStore(config: Config): Promise<Finding[]> {
  const store = parseStore(config.store);
  if (store === undefined || store.kind === 'memory')
    return [ok('store', 'in memory: there is no server to check, and each process counts for itself')];
  return store.kind === 'postgres' ? examinePostgres(config, store) : examineRedis(config, store);
}
