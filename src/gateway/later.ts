import type { Fault } from './faults.ts';
import { list, type Raw, record } from './raw.ts';

/** What the config may say but this version cannot do: refused at start, never silently ignored. */
export function notYet(file: Raw): Fault[] {
  return list(file.routes).flatMap((route, index) => routeFaults(record(route), `routes[${index}]`));
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
