import { randomUUID } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import { createLeases } from 'headgate/limits';
import type { Logger } from 'pino';
import { Accounts } from './accounts/accounts.ts';
import { AccountHealth } from './accounts/health.ts';
import { Applications } from './applications/applications.ts';
import { type Background, createBackground } from './background.ts';
import type { Config } from './config.ts';
import { clientOf, type Database, type Pool } from './db/database.ts';
import { hasCurrentSchema } from './db/migrate.ts';
import { openEnvelope } from './db/root-secret.ts';
import type { Clock } from './domain/clock.ts';
import { worksInBackground } from './domain/process-role.ts';
import { DomainChecks } from './domains/domain-checks.ts';
import { Domains } from './domains/domains.ts';
import { Queue } from './jobs/queue.ts';
import { createClaimStore, createServiceIdempotency } from './journal/claims.ts';
import { Instances } from './journal/instances.ts';
import { MailAccounts } from './journal/mail-accounts.ts';
import { Sender } from './journal/sender.ts';
import { Sends } from './journal/sends.ts';
import { SentCopies } from './journal/sent-copies.ts';
import { Keys } from './keys/keys.ts';
import { AccountLimits } from './limits/account-limits.ts';
import { Guards } from './limits/guards.ts';
import { createLimitStore, createServiceLimiter, type LimitStore } from './limits/limiter.ts';
import { connectRedis } from './limits/redis.ts';
import { Links } from './links/links.ts';
import { WizardSessions } from './links/wizard-sessions.ts';
import { Spool } from './mail/spool.ts';
import { addSources } from './metric-sources.ts';
import { Health } from './observability/health.ts';
import { createLog } from './observability/log.ts';
import { Metrics } from './observability/metrics.ts';
import { createPeople } from './people/people.ts';
import { createGoogle } from './providers/google/google.ts';
import { createImap } from './providers/imap/imap.ts';
import { MockMailbox } from './providers/mock/mailbox.ts';
import { createMock } from './providers/mock/mock.ts';
import { createOutlook } from './providers/outlook/outlook.ts';
import type { Provider } from './providers/provider.ts';
import { Registry } from './providers/registry.ts';
import type { Rooms } from './rooms.ts';
import { Scopes } from './scopes/scopes.ts';
import { Egress } from './security/egress.ts';
import type { MasterKey } from './security/envelope.ts';
import { type HostResolver, systemResolver } from './security/host-records.ts';
import { createServer } from './server.ts';
import { Tracking } from './tracking/tracking.ts';
import { TrackingTokens } from './tracking/tracking-tokens.ts';
import { VERSION } from './version.ts';
import { Conversations } from './webhooks/conversations.ts';
import { Delivery } from './webhooks/delivery.ts';
import { Endpoints, WEBHOOK_JOB } from './webhooks/endpoints.ts';
import { Events } from './webhooks/events.ts';
import { FanOut } from './webhooks/fan-out.ts';

/** A change of limits in another process applies here this much later at most, and one query later. */
const LIMITS_POLL_MS = 500;
/** A job that another process added begins this much later at most, if that process does not do it. */
const JOBS_POLL_MS = 1_000;

/** The parts that the caller gives to a service. */
export interface ServiceParts {
  readonly config: Config;
  readonly db: Database;
  readonly masterKeys: readonly MasterKey[];
  /** The connections of `db`, if it is on a server. */
  readonly pool?: Pool | undefined;
  readonly log?: Logger;
  readonly clock?: Clock;
  /** Beside the providers that come with the service, or in the place of those with the same names. */
  readonly providers?: readonly Provider[];
  /** Resolves names for the checks of custom domains. Default: the name servers of the system. */
  readonly resolver?: HostResolver;
  /** Whether it is part of the running service, as its role says. A command that only looks is not. Default: true. */
  readonly isRunning?: boolean;
}

/** A service that does not listen yet. */
export interface Service {
  readonly app: FastifyInstance;
  readonly rooms: Rooms;
  readonly background: Background;
  /** The processes of the service. */
  readonly instances: Instances;
  /** Lets running requests end, then closes everything but the database. */
  close(): Promise<void>;
}

/** Builds the service. This is the only file that knows every room. */
export async function createService(parts: ServiceParts): Promise<Service> {
  const { config, db, masterKeys, log = createLog(config.LOG_LEVEL), clock = Date.now } = parts;
  const metrics = new Metrics({
    ...{ version: VERSION, role: config.ROLE },
    hasProcessMetrics: parts.isRunning !== false && config.ADMIN_PORT !== undefined,
  });
  const envelope = await openEnvelope(db, masterKeys);
  const keys = new Keys(db, clock, log);
  const hasOthers = config.DATABASE_URL !== undefined;
  const queue = new Queue(db, clock, log, { pollMs: hasOthers ? JOBS_POLL_MS : undefined });
  const endpoints = new Endpoints(db, envelope, clock, queue.table);
  const fanOut = new FanOut(db, endpoints, queue);
  const events = new Events(clock, fanOut);
  const limits = new AccountLimits(db, { pollMs: hasOthers ? LIMITS_POLL_MS : undefined, log });
  const accounts = new Accounts(db, envelope, clock, events, limits);
  const egress = new Egress({ policy: config.EGRESS_POLICY, ports: config.EGRESS_PORTS });
  const mailAccounts = new MailAccounts(
    accounts,
    egress,
    new AccountHealth(db, events, clock, log, () => accounts.forgetRecent()),
  );
  const wizardSessions = new WizardSessions(db, envelope, clock);
  const mockMailbox = new MockMailbox(db, clock);
  const imap = createImap();
  const providers = new Registry([
    createMock(mockMailbox),
    imap,
    ...createGoogle(config, clock),
    ...createOutlook(config, clock),
    ...(parts.providers ?? []),
  ]);
  metrics.addProviders(providers.names);
  const redis = config.REDIS_URL === undefined ? undefined : await connectRedis(config.REDIS_URL, log);
  const newCounters = () => createLimitStore(redis, hasOthers ? clientOf(db) : undefined, log);
  const limitStore = newCounters();
  const leases = config.LIMIT_LEASES ? createLeases() : undefined;
  const limiter = createServiceLimiter(limits, limitStore, log, leases);
  // In memory, attempts of strangers must not take the room of accounts.
  const guards = new Guards(createServiceLimiter(limits, newCounters(), log), log);
  const wakeQueue = async (applicationId: string): Promise<void> => {
    const isLikely = await endpoints.mayTake(applicationId).catch(() => true);
    queue.wake(isLikely);
  };
  const claimStore = createClaimStore(db, log, parts.clock);
  const idempotency = createServiceIdempotency(claimStore, (event) => {
    metrics.onIdempotency(event);
    // The outcome of an email may have events.
    if (event.type === 'completed' || event.type === 'released') void wakeQueue(event.scope);
  });
  const conversations = new Conversations(db, clock);
  queue.handle(
    WEBHOOK_JOB,
    new Delivery({
      ...{ db, clock, log, egress, endpoints, events, conversations },
      onRequest: (outcome, lagMs) => metrics.onWebhook(outcome, lagMs === undefined ? undefined : lagMs / 1_000),
    }),
  );
  const sends = new Sends(db, envelope, clock, events);
  const instances = new Instances(db, clock, log, randomUUID(), config.ROLE);
  const copies = new SentCopies({
    ...{ db, envelope, clock, log, queue, accounts, mailAccounts, providers },
    maxBytes: config.APPEND_MAX_BYTES,
  });
  const domains = new Domains(db, clock);
  const targets = { auth: new URL(config.AUTH_URL).hostname, tracking: new URL(config.TRACKING_URL).hostname };
  const { resolver = systemResolver() } = parts;
  const health = new Health({
    hasCurrentSchema: () => hasCurrentSchema(db),
    redisAnswers: () => redis && redis.status === 'ready' && !isOpen(limitStore),
  });
  const rooms: Rooms = {
    config,
    clock,
    log,
    health,
    metrics,
    envelope,
    people: createPeople(db, clock, envelope),
    applications: new Applications(db, clock),
    keys,
    scopes: new Scopes(db, clock, () => keys.forgetResolved()),
    accounts,
    mailAccounts,
    egress,
    queue,
    events,
    endpoints,
    fanOut,
    conversations,
    links: new Links(db, envelope, clock, accounts, wizardSessions),
    wizardSessions,
    limits,
    limiter,
    guards,
    idempotency,
    providers,
    mockMailbox,
    sends,
    sender: new Sender(sends, config.SEND_TIMEOUT_MS, copies),
    spool: new Spool(config.SPOOL_MAX_BYTES),
    domains,
    domainChecks: new DomainChecks({ domains, resolver, targets, clock, log }),
    tracking: new Tracking(db, clock, log, new TrackingTokens(envelope.deriveAll('tracking')), events),
  };
  addSources({ rooms, instances, limitStore, leases, claimStore, pool: parts.pool });
  await limits.refresh();
  const app = await createServer(rooms);
  const background = createBackground({ rooms, db });
  if (parts.isRunning !== false) {
    await instances.start();
    if (worksInBackground(config.ROLE)) background.start();
  }
  const close = async (): Promise<void> => {
    await app.close();
    await rooms.tracking.close();
    await Promise.all([background.close(), copies.close()]);
    await instances.close();
    imap.close();
    await Promise.all([limits.close(), keys.close(), limiter.close(), guards.close(), idempotency.close()]);
    await egress.close();
    redis?.disconnect();
  };
  return { app, rooms, background, instances, close };
}

/** Whether the circuit breaker of the store is open: it does not ask its server for now. */
function isOpen(store: LimitStore): boolean {
  const stats = store.stats();
  return 'breaker' in stats && stats.breaker === 'open';
}
