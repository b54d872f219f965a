import type { EventEmitter } from 'node:events';
import { OptionError } from '../../base/errors.ts';
import { monotonicClock } from '../../core/clock.ts';
import { CommitError, codeOf, isOfStatement, NotSentError } from './errors.ts';

/** The members of `Pool` of pg 8 that the stores use. The package itself is not imported. */
export interface PgPool {
  /** Takes a connection from the pool. */
  connect(): Promise<unknown>;
  /** Runs a statement on any connection. */
  query(text: string): Promise<unknown>;
  readonly totalCount: number;
  readonly waitingCount: number;
}

/** The members of `sql` of postgres 3 (postgres.js) that the stores use. */
export interface PostgresJsSql {
  /** Runs a statement that is a text. */
  unsafe(text: string): PromiseLike<unknown>;
  /** A function: its types depend on the user's. */
  readonly begin: object;
  readonly options: object;
}

/** The members of PGlite that the stores use. */
export interface PgliteDatabase {
  /** Runs one statement. */
  query(text: string): Promise<unknown>;
  /** Runs any number of statements. */
  exec(text: string): Promise<unknown>;
  /** A function. */
  readonly transaction: object;
  readonly closed: boolean;
}

/**
 * `Pool` of pg 8, `sql` of postgres 3, or a PGlite database. The stores never connect, configure or close it.
 */
export type PostgresClient = PgPool | PostgresJsSql | PgliteDatabase;

/** A value: a boolean, null, or the text that PostgreSQL makes of any other type. The name is one lower-case word. */
export type Row = Readonly<Record<string, string | boolean | null>>;

/** An open transaction, or anything else that runs statements. */
export interface Connection {
  /**
   * Runs one statement with parameters, or any number of them without. Write each parameter as `$1::text::bigint`: the
   * clients encode values of other types in different ways. Name each column with one lower-case word: clients can
   * be told to rewrite longer names.
   * @param until by the monotonic clock: the statement is not sent later than this
   * @returns the rows of the last statement
   * @throws NotSentError, or the client's error
   */
  query(text: string, values: readonly (string | null)[], until?: number): Promise<readonly Row[]>;
}

/** Isolation levels of a transaction. */
export type Isolation = 'read committed' | 'repeatable read' | 'serializable';

/** The statements that the stores use, in one form for every client. */
export interface Database extends Connection {
  /** The client that the user passed. */
  readonly client: PostgresClient;
  /**
   * Runs `work` in a transaction on one connection: commits if it resolves, rolls back if it rejects.
   * @param work is also passed the client's own transaction: pg's PoolClient, TransactionSql of postgres.js, or
   * Transaction of PGlite
   * @param isolation the database's default without it
   * @throws the error of `work`, NotSentError, CommitError, or the client's error
   */
  transaction<T>(work: (connection: Connection, native: unknown) => Promise<T>, isolation?: Isolation): Promise<T>;
  /** Whether the client still accepts statements, because the user did not end it. */
  isOpen(): boolean;
  /** Whether a statement can be sent, or wait in a queue that is not full. */
  isReady(): boolean;
  /** Listens to the errors of the client. Returns what stops it. */
  onClientError(listener: (error: unknown) => void): () => void;
}

/** A pool queues each call that waits for a connection, and has no bound. */
const MAX_WAITING = 1_000;
/**
 * A connection that did not answer until so long after the deadline is closed, because a network that is cut reports no
 * error for hours.
 */
const DEAD_AFTER_MS = 10_000;
const BOOLEAN = 16;
/** SQLSTATE of a write on a server that was demoted, or on a standby. */
const READ_ONLY = '25006';
const EXPECTED = 'must be a Pool of pg, an sql function of postgres, or a PGlite database';

/**
 * Detects the client by its members, because the name of its class changes in a minified build and in a subclass.
 * @param option the name of the client in the error
 * @throws OptionError
 */
export function databaseOf(option: string, client: PostgresClient): Database {
  if (hasMembers(client, ['connect', 'query'], ['totalCount', 'waitingCount'])) return fromPg(client as PgPool);
  if (hasMembers(client, ['unsafe', 'begin'], ['options'])) return fromPostgresJs(client as PostgresJsSql);
  if (hasMembers(client, ['query', 'exec', 'transaction'], ['closed'])) return fromPglite(client as PgliteDatabase);
  throw new OptionError(option, client, EXPECTED, another(client));
}

/** The error text about another object that is likely to be passed; undefined if it is unknown. */
function another(client: unknown): string | undefined {
  if (hasMembers(client, ['execute', 'select', 'transaction'])) return 'a Drizzle database: pass its $client';
  if (hasMembers(client, ['selectFrom', 'executeQuery'])) return 'a Kysely database: pass the pool of its dialect';
  if (hasMembers(client, ['$queryRawUnsafe'])) return 'a Prisma client: pass a Pool of pg beside it';
  if (hasMembers(client, ['createQueryRunner'])) return 'a TypeORM data source: pass a Pool of pg beside it';
  if (hasMembers(client, ['raw', 'client'])) return 'a Knex instance: pass a Pool of pg beside it';
  if (hasMembers(client, ['unsafe']) || hasMembers(client, ['query', 'rollback'])) return 'an open transaction';
  if (hasMembers(client, ['query', 'release'])) return 'one connection of a pool: pass the pool';
  if (hasMembers(client, ['query', 'connect'])) return 'a Client of pg, which is one connection: pass a Pool';
  return undefined;
}

function hasMembers(client: unknown, methods: readonly string[], others: readonly string[] = []): boolean {
  const isObject = (typeof client === 'object' && client !== null) || typeof client === 'function';
  if (!isObject) return false;
  const members = client as Readonly<Record<string, unknown>>;
  return methods.every((name) => typeof members[name] === 'function') && others.every((name) => name in client);
}

interface PgResult {
  readonly command: string;
  readonly rows: Row[];
}

/** A connection of a pool of pg. */
interface PgClient {
  query(config: object): Promise<PgResult | PgResult[]>;
  on(event: 'error', listener: () => void): unknown;
  off(event: 'error', listener: () => void): unknown;
  end(): Promise<void>;
  release(destroy: boolean): void;
}

/** Applications replace the global parsers of pg, so each statement is given its own. */
const TYPES = {
  getTypeParser: (type: number) => (text: string) => (type === BOOLEAN ? text === 't' : text),
};

function fromPg(pool: PgPool): Database {
  /** Runs `work` with a connection of the pool. */
  const connected = async <T>(work: (client: PgClient) => Promise<T>, until?: number): Promise<T> => {
    const client = await (pool.connect() as Promise<PgClient>).catch((error: unknown) => {
      throw new NotSentError(error);
    });
    // Without a listener, an error of the connection would end the process. The statement fails with it, too.
    client.on('error', ignore);
    let isBroken = false;
    try {
      if (until !== undefined && monotonicClock.now() > until)
        throw new NotSentError(new Error('no connection of the pool was free in time'));
      return await work(client);
    } catch (error) {
      // After a failover, a new connection may lead to the new primary.
      isBroken = !(error instanceof NotSentError) && (!isOfStatement(error) || codeOf(error) === READ_ONLY);
      throw error;
    } finally {
      client.off('error', ignore);
      client.release(isBroken);
    }
  };
  return {
    client: pool,
    isOpen: () => !['ended', 'ending'].some((flag) => Reflect.get(pool, flag) === true),
    isReady: () => pool.waitingCount < MAX_WAITING,
    onClientError: (listener) => listenTo(pool, listener),
    query: (text, values, until) =>
      connected(async (client) => {
        if (until === undefined) return rowsOf(await askPg(client, text, values));
        const deadAfterMs = Math.max(0, until - monotonicClock.now()) + DEAD_AFTER_MS;
        const timer = setTimeout(() => void client.end().catch(ignore), deadAfterMs);
        try {
          return rowsOf(await askPg(client, text, values));
        } finally {
          clearTimeout(timer);
        }
      }, until),
    async transaction(work, isolation) {
      const settle = await connected(async (client) => {
        const ask = (text: string) => askPg(client, text, []);
        await ask(isolation === undefined ? 'begin' : `begin isolation level ${isolation}`);
        const connection: Connection = { query: async (text, values) => rowsOf(await askPg(client, text, values)) };
        try {
          const result = await work(connection, client);
          // The commit of a failed transaction rolls it back, without an error.
          const { command } = await ask('commit').catch(throwCommitError);
          return command === 'COMMIT' ? () => result : throwRolledBack;
        } catch (error) {
          if (error instanceof CommitError) throw error;
          // The connection is fine if it can roll back. If it is not, then the server rolls back.
          if (!(await ask('rollback').then(() => true, ignore))) throw error;
          return () => {
            throw error;
          };
        }
      });
      return settle();
    },
  };
}

async function askPg(client: PgClient, text: string, values: readonly (string | null)[]): Promise<PgResult> {
  const config = { text, types: TYPES };
  const result = await client.query(values.length === 0 ? config : { ...config, values: [...values] });
  return Array.isArray(result) ? (result.at(-1) as PgResult) : result;
}

const rowsOf = ({ rows }: PgResult): readonly Row[] => rows;

/** `sql` of postgres.js, or its TransactionSql. */
interface PostgresJsConnection {
  unsafe(
    text: string,
    values: readonly (string | null)[],
    options: object,
  ): {
    raw(): Promise<PostgresJsResult | PostgresJsResult[]>;
  };
}

interface PostgresJsResult extends Array<readonly (Uint8Array | null)[]> {
  /** Null if the statement returns no rows. */
  readonly columns: readonly { readonly name: string; readonly type: number }[] | null;
}

function fromPostgresJs(sql: PostgresJsSql): Database {
  let isEnded = false;
  const query = async (text: string, values: readonly (string | null)[]) => {
    try {
      return await askPostgresJs(sql as unknown as PostgresJsConnection, text, values);
    } catch (error) {
      const code = codeOf(error);
      isEnded ||= code === 'CONNECTION_ENDED';
      // The client did not connect, so it sent nothing.
      throw code === 'CONNECT_TIMEOUT' || code === 'ECONNREFUSED' ? new NotSentError(error) : error;
    }
  };
  return {
    client: sql,
    isOpen: () => !isEnded,
    isReady: () => true,
    // The client reports errors only through statements.
    onClientError: () => ignore,
    query,
    transaction: (work, isolation) =>
      inTransaction(
        (run: (native: PostgresJsConnection) => Promise<void>) => (sql.begin as Begin)(run as Run),
        (native) => ({ query: (text, values) => askPostgresJs(native, text, values) }),
        work,
        isolation,
      ),
  };
}

/** The rows as bytes, because the user's transformations and parsers do not apply to them. */
async function askPostgresJs(
  connection: PostgresJsConnection,
  text: string,
  values: readonly (string | null)[],
): Promise<readonly Row[]> {
  // Whether statements are prepared is the user's choice: the client prepares none if its option `prepare` is false.
  const result = await connection.unsafe(text, [...values], { prepare: true }).raw();
  // Several statements have a list of results.
  const last = 'columns' in result ? result : (result.at(-1) as PostgresJsResult);
  const columns = last.columns ?? [];
  const decoder = new TextDecoder();
  return Array.from(last, (cells) => {
    const row: Record<string, string | boolean | null> = {};
    columns.forEach(({ name, type }, i) => {
      const cell = cells[i] ?? null;
      const value = cell && decoder.decode(cell);
      row[name.toLowerCase()] = value !== null && type === BOOLEAN ? value === 't' : value;
    });
    return row;
  });
}

/** PGlite, or its Transaction. */
interface PgliteConnection {
  query(text: string, values: readonly (string | null)[]): Promise<{ rows: Readonly<Record<string, unknown>>[] }>;
  exec(text: string): Promise<readonly { rows: Readonly<Record<string, unknown>>[] }[]>;
}

function fromPglite(database: PgliteDatabase): Database {
  return {
    client: database,
    isOpen: () => !database.closed,
    isReady: () => true,
    onClientError: () => ignore,
    query: (text, values) => askPglite(database as unknown as PgliteConnection, text, values),
    transaction: (work, isolation) =>
      inTransaction(
        (run: (native: PgliteConnection) => Promise<void>) =>
          (database.transaction as Begin).call(database, run as Run),
        (native) => ({ query: (text, values) => askPglite(native, text, values) }),
        work,
        isolation,
      ),
  };
}

async function askPglite(
  connection: PgliteConnection,
  text: string,
  values: readonly (string | null)[],
): Promise<readonly Row[]> {
  const result = values.length === 0 ? (await connection.exec(text)).at(-1) : await connection.query(text, values);
  return (result?.rows ?? []).map((row) =>
    Object.fromEntries(
      Object.entries(row).map(([name, value]) => [
        name,
        value === null || typeof value === 'boolean' ? value : String(value),
      ]),
    ),
  );
}

type Run = (native: unknown) => Promise<void>;
type Begin = (run: Run) => Promise<unknown>;

/** A transaction of a client that commits once `run` resolves, and that rolls back if it rejects. */
async function inTransaction<Native, T>(
  begin: (run: (native: Native) => Promise<void>) => Promise<unknown>,
  connectionOf: (native: Native) => Connection,
  work: (connection: Connection, native: unknown) => Promise<T>,
  isolation: Isolation | undefined,
): Promise<T> {
  let done: { readonly result: T } | undefined;
  try {
    await begin(async (native) => {
      const connection = connectionOf(native);
      if (isolation !== undefined) await connection.query(`set transaction isolation level ${isolation}`, []);
      const result = await work(connection, native);
      // The commit of a failed transaction rolls it back, without an error. This statement fails in one.
      await connection.query('select 1', []);
      done = { result };
    });
  } catch (error) {
    if (done !== undefined) return throwCommitError(error);
    throw error;
  }
  return (done as { readonly result: T } | undefined)?.result as T;
}

/** @throws CommitError unless the server itself replied that it did not commit */
function throwCommitError(error: unknown): never {
  throw isOfStatement(error) ? error : new CommitError(error);
}

function throwRolledBack(): never {
  throw new Error('a statement of the transaction failed, so the commit rolled it back');
}

/** A pool of pg is an event emitter. */
function listenTo(client: object, listener: (error: unknown) => void): () => void {
  const { on, off } = client as Partial<EventEmitter>;
  on?.call(client, 'error', listener);
  return () => void off?.call(client, 'error', listener);
}

function ignore(): void {}
