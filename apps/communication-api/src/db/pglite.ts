import { type PGlite, parse, protocol } from '@electric-sql/pglite';
import type { PgliteDatabase } from 'headgate/postgres';
import {
  type CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  type QueryResult,
  type TransactionSettings,
} from 'kysely';
import { type Database, openOver } from './database.ts';

/** Throws if the database must not be changed now. */
type SpaceCheck = () => void;

/** Opens the database of PGlite, the PostgreSQL that runs in this process. */
export function overPglite(pglite: PGlite, checkSpace: SpaceCheck = () => undefined): Database {
  const driver = new PgliteDriver(pglite, checkSpace);
  const dialect: Dialect = {
    createAdapter: () => new PostgresAdapter(),
    createDriver: () => driver,
    createIntrospector: (db) => new PostgresIntrospector(db),
    createQueryCompiler: () => new PostgresQueryCompiler(),
  };
  return openOver(dialect, driver.client);
}

/** PGlite offers one connection, so users take turns: a query must not run in the transaction of another request. */
class PgliteDriver implements Driver {
  readonly #connection: PgliteConnection;
  #ready: Promise<unknown> | undefined;
  #last: Promise<void> = Promise.resolve();
  #release: () => void = () => undefined;

  constructor(
    private readonly pglite: PGlite,
    checkSpace: SpaceCheck,
  ) {
    this.#connection = new PgliteConnection(pglite, checkSpace);
  }

  async init(): Promise<void> {
    // A plan that was made while a table was empty would be kept, and read the whole table later.
    this.#ready ??= this.pglite.waitReady.then(() => this.pglite.exec('set plan_cache_mode = force_custom_plan'));
    await this.#ready;
  }

  async acquireConnection(): Promise<PgliteConnection> {
    const before = this.#last;
    let release = (): void => undefined;
    this.#last = new Promise((resolve) => {
      release = resolve;
    });
    await before;
    this.#release = release;
    return this.#connection;
  }

  async releaseConnection(): Promise<void> {
    this.#release();
  }

  async beginTransaction(_: DatabaseConnection, { isolationLevel }: TransactionSettings): Promise<void> {
    await this.pglite.exec(isolationLevel === undefined ? 'begin' : `begin isolation level ${isolationLevel}`);
  }

  async commitTransaction(): Promise<void> {
    await this.pglite.exec('commit');
  }

  async rollbackTransaction(): Promise<void> {
    await this.pglite.exec('rollback');
  }

  async destroy(): Promise<void> {
    await this.pglite.close();
  }

  /** The client of headgate's stores. Their statements have their turns, too. */
  get client(): PgliteDatabase {
    const { pglite } = this;
    const connection = this.#connection;
    const native = {
      query: (text: string, values: readonly unknown[] = []) => connection.change(text, values),
      exec: (text: string) => pglite.exec(text),
    };
    return {
      query: (...values: Parameters<typeof native.query>) => this.#inTurn(() => native.query(...values)),
      exec: (text: string) => this.#inTurn(() => native.exec(text)),
      transaction: (work: (transaction: typeof native) => Promise<unknown>) =>
        this.#inTurn(async () => {
          await pglite.exec('begin');
          try {
            const result = await work(native);
            await pglite.exec('commit');
            return result;
          } catch (error) {
            await pglite.exec('rollback');
            throw error;
          }
        }),
      get closed() {
        return pglite.closed;
      },
    };
  }

  async #inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    await this.init();
    await this.acquireConnection();
    try {
      return await work();
    } finally {
      this.#release();
    }
  }
}

/**
 * Most statements that PostgreSQL keeps prepared. The service uses fewer, unless the length of a list is part of them.
 */
const MAX_PREPARED = 500;

const WRITES: readonly string[] = ['InsertQueryNode', 'UpdateQueryNode', 'DeleteQueryNode', 'MergeQueryNode'];

/** A prepared statement, and the types of its parameters. */
interface Statement {
  readonly name: string;
  readonly types: readonly number[];
}

/**
 * PGlite's own `query` calls into PostgreSQL six times per statement, and parses the statement each time. Here a
 * statement is prepared once, and then costs one call.
 */
class PgliteConnection implements DatabaseConnection {
  readonly #statements = new Map<string, Statement>();

  constructor(
    private readonly pglite: PGlite,
    private readonly checkSpace: SpaceCheck,
  ) {}

  async executeQuery<Row>({ sql, parameters, query }: CompiledQuery): Promise<QueryResult<Row>> {
    if (WRITES.includes(query.kind)) this.checkSpace();
    const { rows, affectedRows } = await this.#execute(sql, parameters, query.kind === 'RawNode');
    return {
      rows: rows as Row[],
      ...(affectedRows === undefined ? {} : { numAffectedRows: BigInt(affectedRows) }),
    };
  }

  async #execute(sql: string, parameters: readonly unknown[], isRaw: boolean) {
    if (!isRaw && (this.#statements.has(sql) || this.#statements.size < MAX_PREPARED))
      return this.pglite.runExclusive(() => this.#executePrepared(sql, parameters));
    if (parameters.length > 0) return this.pglite.query(sql, [...parameters]);
    // Migrations have several statements at once.
    return (await this.pglite.exec(sql)).at(-1) ?? { rows: [], affectedRows: 0 };
  }

  /** Executes a statement that may change the database. */
  async change(sql: string, parameters: readonly unknown[]) {
    this.checkSpace();
    return this.pglite.runExclusive(() => this.#executePrepared(sql, parameters));
  }

  async #executePrepared(sql: string, parameters: readonly unknown[]) {
    const { name, types } = this.#statements.get(sql) ?? (await this.#prepare(sql));
    const values = parameters.map((value, index) => this.#textOf(value, types[index] ?? 0));
    const { bind, describe, execute, sync } = protocol.serialize;
    const portal = [bind({ statement: name, values }), describe({ type: 'P' }), execute({}), sync()];
    const messages = await this.pglite.execProtocolStream(Buffer.concat(portal));
    const [result = { rows: [], affectedRows: 0 }] = parse.parseResults(messages, this.pglite.parsers);
    return result;
  }

  async #prepare(sql: string): Promise<Statement> {
    const name = `s${this.#statements.size}`;
    const { parse: prepare, describe, sync } = protocol.serialize;
    const request = [prepare({ name, text: sql }), describe({ type: 'S', name }), sync()];
    const messages = await this.pglite.execProtocolStream(Buffer.concat(request));
    const statement = { name, types: parse.parseDescribeStatementResults(messages) };
    this.#statements.set(sql, statement);
    return statement;
  }

  /** A parameter as PostgreSQL reads it. Null is null. */
  #textOf(value: unknown, type: number): string | null {
    if (value === null || value === undefined) return null;
    return this.pglite.serializers[type]?.(value) ?? String(value);
  }

  // biome-ignore lint/correctness/useYield: there are no cursors; a generator is what the interface asks for.
  async *streamQuery<Row>(): AsyncIterableIterator<QueryResult<Row>> {
    throw new Error('PGlite does not stream results.');
  }
}
