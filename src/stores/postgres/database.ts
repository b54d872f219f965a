import { CommitError, isOfStatement } from './errors.ts';

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

/** The type of a boolean column. */
export const BOOLEAN = 16;

/** How a client begins a transaction. */
export type Begin = (run: (native: never) => Promise<void>) => Promise<unknown>;

/** A transaction of a client that commits once `run` resolves, and that rolls back if it rejects. */
export async function inTransaction<T>(
  begin: Begin,
  connectionOf: (native: never) => Connection,
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
export function throwCommitError(error: unknown): never {
  throw isOfStatement(error) ? error : new CommitError(error);
}

export function ignore(): void {}
