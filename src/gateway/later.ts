import type { Fault } from './faults.ts';
import type { Config } from './schema.ts';

const REDIS = /^(rediss?|redis-cluster):\/\/./;

/** What the config may say but this version cannot do: refused at start, never silently ignored. */
export function notYet(config: Config): Fault[] {
  const faults = config.routes.flatMap(({ account, idempotent }, index): Fault[] => {
    const later: Fault[] = [];
    if (account?.startsWith('body.')) {
      later.push({
        path: `routes[${index}].account`,
        reason: 'an account in the body comes with a later version; use path.NAME, query.NAME or header.NAME',
      });
    }
    if (idempotent !== undefined && idempotent !== false) {
      later.push({
        path: `routes[${index}].idempotent`,
        reason: 'idempotency comes with a later version; leave it out',
      });
    }
    return later;
  });
  const store = storeFault(config.store);
  return store === undefined ? faults : [...faults, { path: 'store', reason: store }];
}

function storeFault(store: string): string | undefined {
  if (store === 'memory') return undefined;
  // Not echoed: such a URL may hold a password.
  if (REDIS.test(store)) return 'a store in Redis comes with a later version; use "memory"';
  return 'is no store that headgate knows; use "memory"';
}
