import type { Idempotency, Limiter } from 'headgate';
import type { Logger } from 'pino';
import type { Accounts } from './accounts/accounts.ts';
import type { Applications } from './applications/applications.ts';
import type { Config } from './config.ts';
import type { Clock } from './domain/clock.ts';
import type { DomainChecks } from './domains/domain-checks.ts';
import type { Domains } from './domains/domains.ts';
import type { Queue } from './jobs/queue.ts';
import type { MailAccounts } from './journal/mail-accounts.ts';
import type { Sender } from './journal/sender.ts';
import type { Sends } from './journal/sends.ts';
import type { Keys } from './keys/keys.ts';
import type { AccountLimits } from './limits/account-limits.ts';
import type { Guards } from './limits/guards.ts';
import type { Links } from './links/links.ts';
import type { WizardSessions } from './links/wizard-sessions.ts';
import type { Spool } from './mail/spool.ts';
import type { Health } from './observability/health.ts';
import type { Metrics } from './observability/metrics.ts';
import type { People } from './people/people.ts';
import type { MockMailbox } from './providers/mock/mailbox.ts';
import type { Registry } from './providers/registry.ts';
import type { Scopes } from './scopes/scopes.ts';
import type { Egress } from './security/egress.ts';
import type { Envelope } from './security/envelope.ts';
import type { Tracking } from './tracking/tracking.ts';
import type { Conversations } from './webhooks/conversations.ts';
import type { Endpoints } from './webhooks/endpoints.ts';
import type { Events } from './webhooks/events.ts';
import type { FanOut } from './webhooks/fan-out.ts';

/** The rooms that the HTTP surfaces use. `service.ts` makes them. */
export interface Rooms {
  readonly config: Config;
  readonly clock: Clock;
  readonly log: Logger;
  readonly health: Health;
  readonly metrics: Metrics;
  readonly envelope: Envelope;
  /** Who may use the dashboard, and the log of their actions. */
  readonly people: People;
  readonly applications: Applications;
  readonly keys: Keys;
  readonly scopes: Scopes;
  readonly accounts: Accounts;
  readonly mailAccounts: MailAccounts;
  readonly egress: Egress;
  readonly queue: Queue;
  readonly events: Events;
  /** The receivers of the events of applications. */
  readonly endpoints: Endpoints;
  readonly fanOut: FanOut;
  readonly conversations: Conversations;
  readonly limits: AccountLimits;
  readonly limiter: Limiter;
  readonly guards: Guards;
  readonly links: Links;
  readonly wizardSessions: WizardSessions;
  readonly providers: Registry;
  /** What the mock provider delivered. */
  readonly mockMailbox: MockMailbox;
  readonly idempotency: Idempotency;
  readonly sends: Sends;
  readonly sender: Sender;
  readonly spool: Spool;
  readonly tracking: Tracking;
  readonly domains: Domains;
  readonly domainChecks: DomainChecks;
}
