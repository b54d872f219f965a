import type { KeptResult } from '../core/claim.ts';
import { HeadgateError } from '../core/errors.ts';

/** How values of an operation are kept. */
export interface Codec<T> {
  /**
   * Text of a value; what it throws for is kept without its value (I7).
   * @default JSON.stringify
   */
  readonly serialize: (value: T) => string;
  /**
   * The value of a text that `serialize` made.
   * @default JSON.parse
   */
  readonly deserialize: (text: string) => T;
}

/** The operation failed after dispatch: that outcome is kept, and this is what a retry gets of it (I6). */
export class KeptFailureError extends HeadgateError {
  constructor(
    /** Name of the original error. */
    readonly failure: string,
    message: string,
  ) {
    super('kept_failure', message);
  }
}

/** See {@link notExecuted}. */
export class NotExecutedError extends HeadgateError {
  constructor(cause: unknown) {
    super('not_executed', `the operation is known not to have happened: ${describe(cause).message}`, { cause });
  }
}

/**
 * Marks an error for an operation to throw: its effect is *known* not to have happened, and not to happen any more, so that the key is given
 * back and a retry executes (I6). `run` rejects with `error` itself.
 * @example
 * if (error.code === 'ECONNREFUSED') throw notExecuted(error);
 */
export function notExecuted(error: unknown): HeadgateError {
  return new NotExecutedError(error);
}

const OK = 'ok';
const FAILED = 'failed';

export const json: Codec<unknown> = {
  // JSON has no undefined, and nothing that it makes is empty.
  serialize: (value) => JSON.stringify(value) ?? '',
  deserialize: (text) => (text === '' ? undefined : JSON.parse(text)),
};

export function keptValue<T>(value: T, { serialize }: Codec<T>): KeptResult {
  let text: unknown;
  try {
    text = serialize(value);
  } catch {
    // The effect has happened: that much is kept.
  }
  return { status: OK, value: typeof text === 'string' ? text : undefined };
}

export function keptFailure(error: unknown): KeptResult {
  return { status: FAILED, value: JSON.stringify(describe(error)) };
}

/** What is kept, as a retry gets it. */
export function outcomeOf<T>(
  text: string,
  status: string,
  { deserialize }: Codec<T>,
): { readonly kind: 'replayed'; readonly value: T } | { readonly kind: 'failed'; readonly error: KeptFailureError } {
  if (status !== FAILED) return { kind: 'replayed', value: deserialize(text) };
  const { name, message } = JSON.parse(text) as { name: string; message: string };
  return { kind: 'failed', error: new KeptFailureError(name, message) };
}

function describe(error: unknown): { readonly name: string; readonly message: string } {
  return error instanceof Error
    ? { name: error.name, message: error.message }
    : { name: typeof error, message: String(error) };
}
