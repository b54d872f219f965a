import type { Config } from '../config/schema.ts';
import { parseStore } from '../config/store-url.ts';
import type { Log } from '../operations/log.ts';
import type { GatewayStore } from './gateway-store.ts';
import { openMemory } from './memory-store.ts';
import { openPostgres } from './postgres-store.ts';
import { openRedis } from './redis-store.ts';

/**
 * Opens the store of the config. If its server is down, that is a warning, not an error.
 * @throws ConfigError if the file of the adjustments cannot be read; PostgresSetupError if the schema is missing
 */
export async function openStore(config: Config, log: Log): Promise<GatewayStore> {
  const store = parseStore(config.store) ?? { kind: 'memory' };
  switch (store.kind) {
    case 'memory':
      return openMemory(config);
    case 'postgres':
      return openPostgres(config, store, log);
    default:
      return openRedis(config, store, log);
  }
}
