import { OptionError } from '../../base/errors.ts';
import { getOrCreate } from '../../base/get-or-create.ts';
import { checkOptions } from '../../base/options.ts';
import { nameCounters } from '../../core/counters.ts';
import { databaseOf, type PostgresClient } from './client.ts';
import type { Connection, Database, Row } from './database.ts';
import { PostgresSetupError, rowsErrorOf, setupProblemOf } from './errors.ts';
import { databaseIn, type Executor } from './executor.ts';
import adjustments from './sql/adjustments.sql';
import blocks from './sql/blocks.sql';
import claims from './sql/claims.sql';
import cooldowns from './sql/cooldowns.sql';
import inTransaction from './sql/in-transaction.sql';
import limits from './sql/limits.sql';
import rows from './sql/rows.sql';
import shared from './sql/schema.sql';
import settle from './sql/settle.sql';
import slots from './sql/slots.sql';
import undo from './sql/undo.sql';

/** Options of {@link migrate} and {@link sql}. */
export interface SchemaOptions {
  /**
   * The schema of the tables and functions, so that several gateways can share a database: 1 to 63 of A-Z, a-z, 0-9, _
   * and -, not beginning with a digit, - or `pg_`.
   * @default 'headgate'
   */
  readonly schema?: string | undefined;
}

/** A later version of the schema. Released migrations never change. */
interface Migration {
  readonly text: string;
  /** The oldest version of the library's schema that still works after it. */
  readonly oldest: number;
}

/** The migration at index 0 makes version 1. */
const MIGRATIONS: readonly Migration[] = [
  { text: [shared, limits, blocks, settle, claims, adjustments].join('\n'), oldest: 1 },
  { text: [rows, inTransaction].join('\n'), oldest: 1 },
  { text: [cooldowns, slots, undo].join('\n'), oldest: 1 },
];

/** The version of the schema that this version of the library uses. It works on later ones, too, if they say so. */
const SCHEMA_VERSION = MIGRATIONS.length;

/** Of the lock under which one process at a time migrates. */
const LOCK = '7233180926112403';
const NAME = /^(?!pg_)[A-Za-z_][\w-]{0,62}$/;

/**
 * The name in quotes.
 * @throws OptionError
 */
export function quotedSchema(schema = 'headgate'): string {
  if (typeof schema === 'string' && NAME.test(schema)) return `"${schema}"`;
  const rule = 'must be 1 to 63 of A-Z, a-z, 0-9, _ and -, and must not begin with a digit, - or pg_';
  throw new OptionError('schema', schema, rule);
}

/**
 * The SQL that creates the schema, its tables and its functions in a database without them, for migration tools. Run it
 * once, in one transaction, as a user that may create a schema.
 * @throws OptionError
 */
export function sql(options: SchemaOptions = {}): string {
  checkOptions(options, ['schema'], 'options');
  const schema = quotedSchema(options.schema);
  return [`create schema if not exists ${schema};`, textSince(0, schema)].join('\n\n');
}

/** The migrations after a version, and the row that says so. */
function textSince(version: number, schema: string): string {
  const { oldest } = MIGRATIONS.at(-1) as Migration;
  return [
    ...MIGRATIONS.slice(version).map(({ text }) => text),
    `insert into headgate.meta (version, oldest) values (${SCHEMA_VERSION}, ${oldest})`,
    '  on conflict (is_only) do update set version = excluded.version, oldest = excluded.oldest;\n',
  ]
    .join('\n')
    .replaceAll('headgate.', `${schema}.`);
}

/**
 * Creates the schema, its tables and its functions, or brings them to this version. It changes nothing if they are up
 * to date, and any number of processes may call it at the same time. Its user needs the right to create them; the
 * stores themselves only use them.
 * @param client or an executor, to migrate in your open transaction. It gets texts with several statements and no values
 * @throws OptionError, PostgresSetupError, the client's error
 */
export async function migrate(client: PostgresClient | Executor, options: SchemaOptions = {}): Promise<void> {
  checkOptions(options, ['schema'], 'options');
  const schema = quotedSchema(options.schema);
  const database = databaseIn(client);
  try {
    await database.transaction((connection) => migrateIn(connection, schema), 'read committed');
  } catch (error) {
    const problem = setupProblemOf(error);
    if (problem === undefined) throw error;
    throw new PostgresSetupError(`the schema ${schema} ${problem}: migrate as a user with the right to create`, error);
  }
}

async function migrateIn(connection: Connection, schema: string): Promise<void> {
  await connection.query(`select pg_advisory_xact_lock(${LOCK})`, []);
  const [found] = await connection.query(
    `select current_setting('server_encoding') as encoding, to_regnamespace($1::text) is not null as exists,
       to_regclass($1::text || '.meta') is not null as migrated`,
    [schema],
  );
  if (found?.encoding !== 'UTF8') {
    throw new PostgresSetupError(
      `the encoding of the database is ${found?.encoding}, and must be UTF8: create another`,
    );
  }
  // Even "if not exists" needs the right to create a schema.
  if (found.exists !== true) await connection.query(`create schema ${schema}`, []);
  const version = found.migrated === true ? await usableVersion(connection, schema) : 0;
  if (version < SCHEMA_VERSION) await connection.query(textSince(version, schema), []);
}

/**
 * The version of the schema.
 * @throws PostgresSetupError if this version of the library is too old for it
 */
async function usableVersion(connection: Connection, schema: string): Promise<number> {
  const [row] = await connection.query(`select version, oldest from ${schema}.meta`, []);
  const { version, oldest } = numbersOf(row);
  if (oldest <= SCHEMA_VERSION) return version;
  throw new PostgresSetupError(
    `the schema ${schema} has version ${version}, which needs a library for version ${oldest} or later, not ${SCHEMA_VERSION}: update headgate`,
  );
}

const numbersOf = (row: Row | undefined) => ({ version: Number(row?.version ?? 0), oldest: Number(row?.oldest ?? 0) });

const identities = /* @__PURE__ */ new WeakMap<object, Map<string, object>>();

/** headgate's schema in a database, for the stores: they write `headgate.` in place of its name. */
export class Schema {
  readonly database: Database;
  /** In quotes. */
  readonly name: string;
  /** The same object for each schema of a client: stores with the same object share their counters. */
  readonly identity: object;
  /** The texts with the schema's name. The stores use a few, which never change. */
  readonly #texts = new Map<string, string>();

  /**
   * @param client an executor only together with `database`
   * @throws OptionError
   */
  constructor(client: PostgresClient | Executor, { schema }: SchemaOptions, database?: Database) {
    this.database = database ?? databaseOf('client', client as PostgresClient);
    this.name = quotedSchema(schema);
    const ofClient = getOrCreate(identities, client, () => new Map<string, object>());
    this.identity = getOrCreate(ofClient, this.name, () => ({
      schema,
      client,
      ...nameCounters(client, `postgres ${schema}`),
    }));
  }

  /**
   * Runs one statement.
   * @param until by the monotonic clock: the statement is not sent later than this
   * @param connection an open transaction
   * @throws PostgresSetupError, RowsFailedError, NotSentError, or the client's error
   */
  async query(
    text: string,
    values: readonly (string | null)[],
    until?: number,
    connection: Connection = this.database,
  ): Promise<readonly Row[]> {
    this.checkOpen();
    let named = this.#texts.get(text);
    if (named === undefined) {
      named = text.replaceAll('headgate.', `${this.name}.`);
      this.#texts.set(text, named);
    }
    try {
      return await connection.query(named, values, until);
    } catch (error) {
      throw rowsErrorOf(error) ?? (await this.#explained(error));
    }
  }

  /**
   * Asks the server whether the schema, its version, the rights to it and the settings of the database are right.
   * @throws PostgresSetupError, or the client's error
   */
  async check(until?: number): Promise<void> {
    this.checkOpen();
    try {
      const [row] = await this.database.query(
        `select version, oldest, current_setting('transaction_isolation') as isolation from ${this.name}.meta`,
        [],
        until,
      );
      await this.#checkVersion(row);
    } catch (error) {
      throw this.#problem(error) ?? error;
    }
  }

  async #checkVersion(row: Row | undefined): Promise<void> {
    const { version, oldest } = numbersOf(row);
    if (version < SCHEMA_VERSION) {
      throw new PostgresSetupError(
        `the schema ${this.name} has version ${version}, and this library needs version ${SCHEMA_VERSION}: call migrate`,
      );
    }
    if (oldest > SCHEMA_VERSION) await usableVersion(this.database, this.name);
    // After a call waits for a lock, it reads once more; other isolation levels would show it the old state.
    if (row?.isolation !== 'read committed') {
      throw new PostgresSetupError(
        `default_transaction_isolation is "${row?.isolation}", and must be "read committed" for headgate's user`,
      );
    }
  }

  /** @throws PostgresSetupError if the client was ended */
  checkOpen(): void {
    const problem = this.#ended();
    if (problem !== undefined) throw problem;
  }

  /** The error to throw: a missing function can mean that the schema is older or newer, so this asks for its version. */
  async #explained(error: unknown): Promise<unknown> {
    const problem = this.#problem(error);
    if (problem === undefined) return error;
    try {
      await this.check();
    } catch (reason) {
      if (reason instanceof PostgresSetupError) return reason;
    }
    return problem;
  }

  /** A client can be ended while a call is under way, and postgres.js says so only to a call. */
  #ended(): PostgresSetupError | undefined {
    if (this.database.isOpen()) return undefined;
    return new PostgresSetupError('the client was ended: create a new one, and a new store with it');
  }

  #problem(error: unknown): PostgresSetupError | undefined {
    if (error instanceof PostgresSetupError) return error;
    const ended = this.#ended();
    if (ended !== undefined) return ended;
    const reason = setupProblemOf(error);
    if (reason === undefined) return undefined;
    return new PostgresSetupError(
      `the schema ${this.name} ${reason}: call migrate, and see the grants in docs/postgres.md`,
      error,
    );
  }
}
