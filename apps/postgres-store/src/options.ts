import { OptionError } from 'headgate';
import type { Clock } from 'headgate/limits';

/** Options of both stores. */
export interface PostgresStoreOptions {
  /**
   * The schema of the tables, so that several gateways can share a database.
   * @default 'headgate'
   */
  readonly schema?: string | undefined;
  /**
   * Longest wait for an answer, in milliseconds. A call that could not change anything by then throws
   * `StoreUnavailableError`; if the server may still execute it, the call throws `StoreTimeoutError`.
   * @default 1_000
   */
  readonly deadlineMs?: number | undefined;
  /**
   * For tests: a clock that returns integer milliseconds.
   * @default the server's clock
   */
  readonly clock?: Clock | undefined;
}

const SCHEMA = /^[a-z_][a-z0-9_]{0,62}$/;

/** @throws OptionError */
export function schemaName(schema = 'headgate'): string {
  if (SCHEMA.test(schema)) return `"${schema}"`;
  throw new OptionError('schema', schema, 'must be 1 to 63 characters a-z, 0-9 and _, and not begin with a digit');
}

/** @throws OptionError */
export function positiveInteger(option: string, value: number): number {
  // The longest timer.
  if (Number.isInteger(value) && value > 0 && value < 2 ** 31) return value;
  throw new OptionError(option, value, 'must be a positive integer below 2^31');
}
