import type { FastifyInstance } from 'fastify';
import { type Logger, pino } from 'pino';
import { Accounts } from './accounts/accounts.ts';
import { createServer } from './api/server.ts';
import { Applications } from './applications/applications.ts';
import type { Config } from './config.ts';
import type { Database } from './db/database.ts';
import type { Clock } from './domain/clock.ts';
import { Keys } from './keys/keys.ts';
import { Links } from './links/links.ts';
import { WizardSessions } from './links/wizard-sessions.ts';
import { createMock } from './providers/mock/mock.ts';
import type { Provider } from './providers/provider.ts';
import { Registry } from './providers/registry.ts';
import type { Rooms } from './rooms.ts';
import { Envelope, type MasterKey } from './security/envelope.ts';

/** What a service is made of. */
export interface ServiceParts {
  readonly config: Config;
  readonly db: Database;
  readonly masterKeys: readonly MasterKey[];
  readonly log?: Logger;
  readonly clock?: Clock;
  /** Beside the providers that come with the service. */
  readonly providers?: readonly Provider[];
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
  const { config, db, masterKeys, log = pino({ level: config.LOG_LEVEL }), clock = Date.now, providers = [] } = parts;
  const envelope = new Envelope(masterKeys);
  const accounts = new Accounts(db, envelope, clock);
  const wizardSessions = new WizardSessions(db, envelope, clock);
  const rooms: Rooms = {
    config,
    clock,
    log,
    envelope,
    applications: new Applications(db, clock),
    keys: new Keys(db, clock),
    accounts,
    links: new Links(db, envelope, clock, accounts, wizardSessions),
    wizardSessions,
    providers: new Registry([createMock(), ...providers]),
  };
  const app = await createServer(rooms);
  return { app, rooms, close: () => app.close() };
}
