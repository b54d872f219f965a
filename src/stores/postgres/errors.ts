import { HeadgateError, StoreUnavailableError } from '../../base/errors.ts';
import { describeThrown } from '../../base/thrown.ts';

/**
 * The database or the client is not set up for headgate, and waiting does not help: the message says what to do. No
 * failure policy turns it into an admission. Nothing was charged or claimed.
 */
export class PostgresSetupError extends HeadgateError {
  override readonly name = 'PostgresSetupError';

  constructor(message: string, cause?: unknown) {
    super('store_setup', message, cause === undefined ? undefined : { cause });
  }
}

/**
 * PostgreSQL refused a statement of `rows`. Neither the rows nor the step of the claim were written. The message names the
 * step, and says what PostgreSQL said.
 */
export class RowsFailedError extends HeadgateError {
  override readonly name = 'RowsFailedError';
  /** The SQLSTATE of the error, for example `23505` for a duplicate key. */
  readonly sqlState: string;
  /** The name of the constraint that the rows violate. */
  readonly constraint: string | undefined;

  constructor(message: string, sqlState: string, constraint: string | undefined) {
    super('rows_failed', message);
    this.sqlState = sqlState;
    this.constraint = constraint;
  }
}

/** SQLSTATE of `sql/rows.sql`. */
const ROWS_FAILED = 'HG003';

/** The error of a statement of `rows` behind the error of a client or of a store; undefined for any other error. */
export function rowsErrorOf(error: unknown): RowsFailedError | undefined {
  const cause = error instanceof StoreUnavailableError ? error.cause : error;
  if (cause instanceof RowsFailedError) return cause;
  if (codeOf(cause) !== ROWS_FAILED) return undefined;
  const { message, detail, constraint, constraint_name } = cause as Readonly<Record<string, string | undefined>>;
  return new RowsFailedError(String(message), String(detail), constraint ?? constraint_name);
}

/** The statement never left this process. */
export class NotSentError extends Error {
  override readonly name = 'NotSentError';

  constructor(cause: unknown) {
    super(describeThrown(cause).message, { cause });
  }
}

/** The connection failed during a commit, see `cause`: it is unknown whether the transaction is committed. */
export class CommitError extends Error {
  override readonly name = 'CommitError';

  constructor(cause: unknown) {
    super(`it is unknown whether the transaction is committed: ${describeThrown(cause).message}`, { cause });
  }
}

/** The SQLSTATE of a server's error, or the code of a client's error. */
export function codeOf(error: unknown): string | undefined {
  const code: unknown = (error as { readonly code?: unknown } | null | undefined)?.code;
  return typeof code === 'string' ? code : undefined;
}

/** SQLSTATEs with which a server closes the connection: class 08, shutdowns and time limits of sessions. */
const CLOSES = /^(08|57P0|25P03|28|3D|53300)/;

/**
 * Whether the server refused a statement, and keeps the connection: then the statement changed nothing. By its code,
 * because servers translate the severity. An error of the system has a code too, and EPIPE looks like the server's.
 */
export function isOfStatement(error: unknown): boolean {
  const code = codeOf(error);
  if (code === undefined || Object.hasOwn(error as object, 'syscall')) return false;
  return /^[0-9A-Z]{5}$/.test(code) && !CLOSES.test(code) && !isFatal(error);
}

function isFatal(error: unknown): boolean {
  return ['FATAL', 'PANIC'].includes((error as { readonly severity?: unknown }).severity as string);
}

/** The reasons why the set-up is wrong, by SQLSTATE. */
const SETUP: Readonly<Record<string, string>> = {
  // Of headgate's own functions.
  HG001: 'needs the isolation level "read committed": change default_transaction_isolation of its user',
  '3D000': 'the database does not exist',
  '3F000': 'is missing',
  '42883': 'is missing, or has another version',
  '42P01': 'is missing, or has another version',
  '42703': 'has another version',
  '42704': 'is missing, or has another version',
  '42501': 'cannot be used by this user',
  '28000': 'cannot be reached, because the server rejected the user',
  '28P01': 'cannot be reached, because the server rejected the password',
};

/** Why the set-up is wrong; undefined if the error says nothing about the set-up. */
export function setupProblemOf(error: unknown): string | undefined {
  const cause = error instanceof NotSentError ? error.cause : error;
  const code = codeOf(cause);
  return code === undefined || !Object.hasOwn(SETUP, code) ? undefined : SETUP[code];
}

/** The set-up error behind an error of a store; undefined without one. */
export function setupErrorOf(error: unknown): PostgresSetupError | undefined {
  const cause = error instanceof StoreUnavailableError ? error.cause : error;
  return cause instanceof PostgresSetupError ? cause : undefined;
}
