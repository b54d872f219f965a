import type { Idempotency, Limiter } from 'headgate';
import type { Logger } from 'pino';
import type { Accounts } from './accounts/accounts.ts';
import type { Applications } from './applications/applications.ts';
import type { Config } from './config.ts';
import type { Clock } from './domain/clock.ts';
import type { Sender } from './journal/sender.ts';
import type { Sends } from './journal/sends.ts';
import type { Keys } from './keys/keys.ts';
import type { Spool } from './mail/spool.ts';
import type { Registry } from './providers/registry.ts';
import type { Envelope } from './security/envelope.ts';
import type { Tracking } from './tracking/tracking.ts';

/** What the HTTP surfaces work with. `service.ts` makes it. */
export interface Rooms {
  readonly config: Config;
  readonly clock: Clock;
  readonly log: Logger;
  readonly envelope: Envelope;
  readonly applications: Applications;
  readonly keys: Keys;
  readonly accounts: Accounts;
  readonly providers: Registry;
  readonly limiter: Limiter;
  readonly idempotency: Idempotency;
  readonly sends: Sends;
  readonly sender: Sender;
  readonly spool: Spool;
  readonly tracking: Tracking;
}
