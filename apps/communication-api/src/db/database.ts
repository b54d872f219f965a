import type { PgliteDatabase, PostgresClient } from 'headgate/postgres';
import { CompiledQuery, type Dialect, Kysely, PostgresDialect } from 'kysely';
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

export const overPool = (pool: pg.Pool): Database => openOver(new PostgresDialect({ pool }), pool);

const clients = new WeakMap<Database, PostgresClient>();

/** @param client has the same connections: the stores of headgate use it */
export function openOver(dialect: Dialect, client: PostgresClient): Database {
  const db = new Kysely<Tables>({ dialect });
  clients.set(db, client);
  return db;
}

/** The client of an open database, for the stores of headgate. Of a transaction: its statements are part of it. */
export function clientOf(db: Database): PostgresClient {
  if (db.isTransaction) return clientIn(db);
  const client = clients.get(db);
  if (client === undefined) throw new Error('The database was not opened by openOver().');
  return client;
}

function clientIn(transaction: Database): PgliteDatabase {
  const client = {
    query: (text: string, values: readonly unknown[] = []) =>
      transaction.executeQuery<Record<string, unknown>>(CompiledQuery.raw(text, [...values])),
    exec: async (text: string) => [await client.query(text)],
    transaction: (work: (native: unknown) => Promise<unknown>) => work(client),
    closed: false,
  };
  return client;
}

/** Runs statements in the transaction of the caller if there is one, else in a new transaction. */
export const inTransaction = async <Result>(
  db: Database,
  work: (transaction: Database) => Promise<Result>,
): Promise<Result> => (db.isTransaction ? work(db) : db.transaction().execute(work));
