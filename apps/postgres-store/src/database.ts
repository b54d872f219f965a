import type { Clock } from 'headgate/limits';
import type { ReadyOptions } from 'headgate/stores';
import { StoreTimeoutError, StoreUnavailableError } from 'headgate/stores';
import type { Pool, PoolClient, QueryResultRow } from 'pg';
import { type PostgresStoreOptions, positiveInteger, schemaName } from './options.ts';

/** What `headgate.version()` returns. */
export const SCHEMA_VERSION = 1;

/** A pool keeps each caller that waits for a connection, so a server that is away must not let them pile up. */
const MAX_WAITING = 1_000;

/** SQLSTATEs of a database without the tables or functions. */
const NOT_MIGRATED = ['3F000', '42883', '42P01'];

const RETRY_MS = 100;

/** A pool, with a deadline for each call. */
export class Database {
  readonly pool: Pool;
  readonly schema: string;
  readonly deadlineMs: number;
  readonly clock: Clock | undefined;

  /** @throws OptionError */
  constructor(pool: Pool, { schema, deadlineMs = 1_000, clock }: PostgresStoreOptions) {
    this.pool = pool;
    this.schema = schemaName(schema);
    this.deadlineMs = positiveInteger('deadlineMs', deadlineMs);
    this.clock = clock;
  }

  /** The time that a call passes. Null: the server's clock. */
  now(): number | null {
    return this.clock?.now() ?? null;
  }

  /**
   * Executes one statement, in one round trip. The prefix `headgate.` is replaced by the schema.
   * @throws StoreTimeoutError if it may still be executed, StoreUnavailableError otherwise
   */
  async query<Row extends QueryResultRow>(
    text: string,
    values: readonly unknown[],
    deadlineMs = this.deadlineMs,
  ): Promise<Row[]> {
    const deadline = performance.now() + deadlineMs;
    const client = await this.#connect(deadlineMs);
    // Without a listener, an error of the connection would end the process. The query fails with it, too.
    client.on('error', ignore);
    const answer = client.query<Row>(text.replaceAll('headgate.', `${this.schema}.`), [...values]);
    try {
      const result = await within(answer, Math.max(1, deadline - performance.now()));
      client.off('error', ignore);
      client.release();
      return result.rows;
    } catch (error) {
      answer.catch(ignore);
      // The connection stays usable after the error of a statement, but not after other errors or a missing answer.
      const isOfStatement = isErrorOfStatement(error);
      if (isOfStatement) client.off('error', ignore);
      client.release(!isOfStatement);
      if (error === LATE) throw new StoreTimeoutError(deadlineMs);
      throw new StoreUnavailableError(this.#explained(error), { sent: !isOfStatement });
    }
  }

  /** Waits until the server answers, and checks that `migrate` ran. */
  async ready({ timeoutMs = 10_000, signal }: ReadyOptions = {}): Promise<void> {
    const end = performance.now() + timeoutMs;
    for (;;) {
      signal?.throwIfAborted();
      const left = Math.ceil(end - performance.now());
      try {
        const found = this.query<{ version: number; isolation: string }>(
          `select headgate.version() as version, current_setting('transaction_isolation') as isolation`,
          [],
          Math.max(1, left),
        );
        const [row] = await (signal === undefined ? found : unlessAborted(found, signal));
        return this.#check(row);
      } catch (error) {
        signal?.throwIfAborted();
        if (error instanceof Mismatch) throw new StoreUnavailableError(error, { sent: false });
        if (error instanceof StoreUnavailableError && error.cause instanceof Mismatch) throw error;
        if (end - performance.now() > RETRY_MS) await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
        else throw error instanceof StoreUnavailableError ? error : new StoreUnavailableError(error);
      }
    }
  }

  #check(row: { version: number; isolation: string } | undefined): void {
    if (row?.version !== SCHEMA_VERSION) {
      throw new Mismatch(`the schema ${this.schema} has version ${row?.version}, not ${SCHEMA_VERSION}: call migrate`);
    }
    // After a call waits for a lock, it reads once more; other isolation levels would show it the old state.
    if (row.isolation !== 'read committed') {
      throw new Mismatch(`default_transaction_isolation is "${row.isolation}", and must be "read committed"`);
    }
  }

  async #connect(deadlineMs: number): Promise<PoolClient> {
    if (this.pool.waitingCount >= MAX_WAITING) {
      throw new StoreUnavailableError(new Error(`${MAX_WAITING} calls wait for a connection`), { sent: false });
    }
    const connecting = this.pool.connect();
    try {
      return await within(connecting, deadlineMs);
    } catch (error) {
      // The pool still gives it to this call, later.
      connecting.then((client) => client.release(), ignore);
      const cause = error === LATE ? new Error(`no connection was free within ${deadlineMs} ms`) : error;
      throw new StoreUnavailableError(cause, { sent: false });
    }
  }

  #explained(error: unknown): unknown {
    const code = (error as { code?: unknown }).code;
    if (typeof code !== 'string' || !NOT_MIGRATED.includes(code)) return error;
    return new Mismatch(`the schema ${this.schema} is missing or incomplete: call migrate`, { cause: error });
  }
}

/** An error that waiting does not help. */
class Mismatch extends Error {}

const LATE = Symbol('late');

function ignore(): void {}

/** Rejects with LATE if no result comes in time. */
async function within<Result>(result: Promise<Result>, ms: number): Promise<Result> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    // If this process was busy, the answer may be there, and is read before the next turn.
    timer = setTimeout(() => setImmediate(() => reject(LATE)), ms);
  });
  try {
    return await Promise.race([result, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Rejects with the reason of the signal. */
async function unlessAborted<Result>(result: Promise<Result>, signal: AbortSignal): Promise<Result> {
  result.catch(ignore);
  let abort: (() => void) | undefined;
  const aborted = new Promise<never>((_, reject) => {
    abort = () => reject(signal.reason);
    signal.addEventListener('abort', abort);
  });
  try {
    return await Promise.race([result, aborted]);
  } finally {
    if (abort !== undefined) signal.removeEventListener('abort', abort);
  }
}

/** Whether the server refused or rolled back the statement: then nothing changed, and the connection is fine. */
const isErrorOfStatement = (error: unknown): boolean => (error as { severity?: unknown }).severity === 'ERROR';
