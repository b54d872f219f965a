import { randomUUID } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import { createIdempotency, createLimiter } from 'headgate';
import { createMemoryClaimStore, createMemoryStore } from 'headgate/memory';
import { recommendedLimits } from 'headgate/recommended';
import { type Logger, pino } from 'pino';
import { Accounts } from './accounts/accounts.ts';
import { createServer } from './api/server.ts';
import { Applications } from './applications/applications.ts';
import type { Config } from './config.ts';
import type { Database } from './db/database.ts';
import type { Clock } from './domain/clock.ts';
import { Instances } from './journal/instances.ts';
import { Sender } from './journal/sender.ts';
import { Sends } from './journal/sends.ts';
import { Sweeper } from './journal/sweeper.ts';
import { Keys } from './keys/keys.ts';
import { Spool } from './mail/spool.ts';
import { MockMailbox } from './providers/mock/mailbox.ts';
import { createMock } from './providers/mock/mock.ts';
import { Registry } from './providers/registry.ts';
import type { Rooms } from './rooms.ts';
import { Envelope, type MasterKey } from './security/envelope.ts';
import { Tracking } from './tracking/tracking.ts';
import { TrackingTokens } from './tracking/tracking-tokens.ts';

/** What a service is made of. */
export interface ServiceParts {
  readonly config: Config;
  readonly db: Database;
  readonly masterKeys: readonly MasterKey[];
  readonly log?: Logger;
  readonly clock?: Clock;
}

/** A service that does not listen yet. */
export interface Service {
  readonly app: FastifyInstance;
  readonly rooms: Rooms;
  /** Lets running requests end, then closes everything but the database. */
  close(): Promise<void>;
}

/** Builds the service. This is the only file that knows every room. */
export async function createService(parts: ServiceParts): Promise<Service> {
  const { config, db, masterKeys, log = pino({ level: config.LOG_LEVEL }), clock = Date.now } = parts;
  const envelope = new Envelope(masterKeys);
  const sends = new Sends(db, envelope, clock);
  const instances = new Instances(db, clock, log, randomUUID());
  const rooms: Rooms = {
    config,
    clock,
    log,
    envelope,
    applications: new Applications(db, clock),
    keys: new Keys(db, clock),
    accounts: new Accounts(db, envelope, clock),
    providers: new Registry([createMock(new MockMailbox(db, clock))]),
    limiter: createLimiter({
      store: createMemoryStore(),
      limits: ({ provider = '' }) => recommendedLimits[provider.split('/')[1] as 'mock'],
    }),
    // A retry runs the handler again, and the journal answers it. So a lost or unreachable store never sends twice.
    idempotency: createIdempotency({
      store: createMemoryClaimStore(),
      onOrphan: 'reexecute',
      onStoreFailure: 'bypass',
      waitMs: 20_000,
      maxRunMs: 600_000,
    }),
    sends,
    sender: new Sender(sends, instances, config.SEND_TIMEOUT_MS),
    spool: new Spool(config.SPOOL_MAX_BYTES),
    tracking: new Tracking(db, clock, log, new TrackingTokens(envelope.deriveAll('tracking'))),
  };
  const app = await createServer(rooms);
  const { accounts, providers } = rooms;
  const sweeper = new Sweeper({ sends, instances, accounts, providers, log, timeoutMs: config.SEND_TIMEOUT_MS });
  await instances.start();
  sweeper.start();
  const close = async (): Promise<void> => {
    await app.close();
    await rooms.tracking.close();
    await sweeper.close();
    await instances.close();
  };
  return { app, rooms, close };
}
