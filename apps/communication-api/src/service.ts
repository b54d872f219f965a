import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import { Accounts } from './accounts/accounts.ts';
import { createServer } from './api/server.ts';
import { Applications } from './applications/applications.ts';
import type { Config } from './config.ts';
import type { Database } from './db/database.ts';
import type { Clock } from './domain/clock.ts';
import { Keys } from './keys/keys.ts';
import { LimitBook } from './limits/book.ts';
import { createServiceLimiter } from './limits/limiter.ts';
import { LimitOverrides } from './limits/overrides.ts';
import { connectRedis } from './limits/redis.ts';
import { createLog } from './observability/log.ts';
import { Registry } from './providers/registry.ts';
import type { Rooms } from './rooms.ts';
import { Scopes } from './scopes/scopes.ts';
import { Envelope, type MasterKey } from './security/envelope.ts';

/** A change of limits in another process applies here this much later at most, and one query later. */
const LIMITS_POLL_MS = 500;

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
  const { config, db, masterKeys, log = createLog(config.LOG_LEVEL), clock = Date.now } = parts;
  const envelope = new Envelope(masterKeys);
  const keys = new Keys(db, clock, log);
  const overrides = new LimitOverrides(db, clock);
  const pollMs = config.DATABASE_URL === undefined ? undefined : LIMITS_POLL_MS;
  const book = new LimitBook(overrides, { pollMs, log });
  const redis = config.REDIS_URL === undefined ? undefined : await connectRedis(config.REDIS_URL, log);
  const limiter = createServiceLimiter({ book, redis, log });
  const rooms: Rooms = {
    config,
    clock,
    log,
    envelope,
    applications: new Applications(db, clock),
    keys,
    scopes: new Scopes(db, clock, () => keys.forgetResolved()),
    accounts: new Accounts(db, envelope, clock),
    overrides,
    book,
    limiter,
    redis,
    providers: new Registry([]),
  };
  await book.start();
  const app = await createServer(rooms);
  const close = async (): Promise<void> => {
    await app.close();
    await Promise.all([book.close(), keys.close(), limiter.close()]);
    redis?.disconnect();
  };
  return { app, rooms, close };
}
