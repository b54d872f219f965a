import { type NetConnectOpts, Socket } from 'node:net';
import { type ClientConfig, Pool } from 'pg';
import { within } from '../base/within.ts';
import type { PostgresStore } from '../config/store-url.ts';
import { sharedLookup } from './shared-lookup.ts';

const CONNECT_MS = 2_000;
/** How long an unused connection stays open: a new one takes several round trips. */
const IDLE_MS = 60_000;

/** Options of {@link createPostgresPool}. */
export interface PostgresPoolOptions {
  /**
   * Longest silence while a statement waits for its answer, in milliseconds. After it the connection is closed. A host
   * that vanishes closes no connection, and without this the system would wait for it for a quarter of an hour.
   * @default 5_000
   */
  readonly silenceMs?: number;
}

/**
 * A pool that connects with its first statement, and again after a failure. A connection that a pooler such as
 * PgBouncer shares between transactions is fine: nothing is set for a session.
 * @param onError called with errors of idle connections
 */
export function createPostgresPool(
  store: PostgresStore,
  onError: (error: Error) => void,
  { silenceMs = 5_000 }: PostgresPoolOptions = {},
): Pool {
  const pool = new Pool({
    host: store.host,
    port: store.port,
    database: store.database,
    user: store.username,
    password: store.password,
    ssl: tlsOf(store),
    max: store.maxConnections,
    connectionTimeoutMillis: CONNECT_MS,
    idleTimeoutMillis: IDLE_MS,
    query_timeout: silenceMs,
    keepAlive: true,
    application_name: 'headgate',
    stream: () => new LookingUpSocket(),
  });
  // Without a listener, a connection that breaks would end the process.
  pool.on('error', onError);
  return pool;
}

function tlsOf({ sslMode, ca }: PostgresStore): Exclude<ClientConfig['ssl'], undefined> {
  const trusted = ca === undefined ? {} : { ca };
  switch (sslMode) {
    case 'disable':
      return false;
    case 'require':
      return { rejectUnauthorized: false };
    case 'verify-ca':
      return { ...trusted, checkServerIdentity: () => undefined };
    case 'verify-full':
      return trusted;
  }
}

/** A socket that looks up the name of the server with {@link sharedLookup}, however its client calls `connect`. */
class LookingUpSocket extends Socket {
  override connect(...args: unknown[]): this {
    const [port, host] = args;
    // A Unix socket has a path in place of a port.
    if (typeof port !== 'number' || typeof host !== 'string') return super.connect(port as NetConnectOpts);
    return super.connect({ port, host, lookup: sharedLookup });
  }
}

/** Whether the server answers now, within `ms`. */
export function answersQuery(pool: Pool, ms: number): Promise<boolean> {
  return within(ms, pool.query('select'));
}
