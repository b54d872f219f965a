import type { Fault } from './faults.ts';
import { list, type Raw, record } from './raw.ts';

const REDIS = /^(rediss?|redis-cluster):\/\/./;

/** What the config may say but this version cannot do: refused at start, never silently ignored. */
export function notYet(file: Raw): Fault[] {
  const faults = list(file.routes).flatMap((route, index) => routeFaults(record(route), `routes[${index}]`));
  const store = typeof file.store === 'string' ? storeFault(file.store) : undefined;
  return store === undefined ? faults : [...faults, { path: 'store', reason: store }];
}

function routeFaults({ account, idempotent }: Raw, path: string): Fault[] {
  const faults: Fault[] = [];
  if (typeof account === 'string' && account.startsWith('body.')) {
    const reason = 'an account in the body comes with a later version; use path.NAME, query.NAME or header.NAME';
    faults.push({ path: `${path}.account`, reason });
  }
  if (idempotent === true || (typeof idempotent === 'object' && idempotent !== null)) {
    faults.push({ path: `${path}.idempotent`, reason: 'idempotency comes with a later version; leave it out' });
  }
  return faults;
}

function storeFault(store: string): string | undefined {
  if (store === 'memory') return undefined;
  // Not echoed: such a URL may hold a password.
  if (REDIS.test(store)) return 'a store in Redis comes with a later version; use "memory"';
  return 'is no store that headgate knows; use "memory"';
}
