import { Kysely, PostgresDialect } from 'kysely';
import pg from 'pg';
import type { Tables } from './tables.ts';

export type Database = Kysely<Tables>;

const CONNECTIONS = 10;
/** A statement that takes longer is cancelled by the server. */
const STATEMENT_TIMEOUT_MS = 15_000;

/** The connections of a process to the database. */
export interface Pool {
  readonly totalCount: number;
  readonly idleCount: number;
  /** Callers that wait for a connection. */
  readonly waitingCount: number;
  readonly options: { readonly max: number };
}

/** Opens the database of a server. */
export const openServer = (...args: Parameters<typeof openPool>): Database => overPool(openPool(...args));

/**
 * Makes the connections to a server.
 * @param onConnectionError receives the error of an idle connection, which the pool then replaces
 */
export function openPool(url: string, onConnectionError: (error: Error) => void): pg.Pool {
  const pool = new pg.Pool({
    connectionString: url,
    max: CONNECTIONS,
    statement_timeout: STATEMENT_TIMEOUT_MS,
    connectionTimeoutMillis: 5_000,
    keepAlive: true,
  });
  pool.on('error', onConnectionError);
  // Without a listener, a connection that is lost during a query would end the process. The query itself fails, too.
  pool.on('connect', (client) => void client.on('error', onConnectionError));
  return pool;
}

export const overPool = (pool: pg.Pool): Database => new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) });

/** Runs statements in the transaction of the caller if there is one, else in a new transaction. */
export const inTransaction = async <Result>(
  db: Database,
  work: (transaction: Database) => Promise<Result>,
): Promise<Result> => (db.isTransaction ? work(db) : db.transaction().execute(work));
