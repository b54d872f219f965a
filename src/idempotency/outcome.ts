import { HeadgateError } from '../base/errors.ts';
import { describeThrown } from '../base/thrown.ts';
import type { KeptResult } from '../core/claim.ts';

/** How the values of an operation are stored. */
export interface ResultCodec<T> {
  /**
   * Converts a value to text. If it throws, the outcome is stored without its value (I7).
   * @default JSON.stringify
   */
  readonly serialize: (value: T) => string;
  /**
   * Converts text that `serialize` made back to the value.
   * @default JSON.parse
   */
  readonly deserialize: (text: string) => T;
}

/** What a retry gets if the operation failed after dispatch: the stored name and message of the original error (I6). */
export class KeptFailureError extends HeadgateError {
  override readonly name = 'KeptFailureError';

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
  override readonly name = 'NotExecutedError';

  constructor(cause: unknown) {
    super('not_executed', `the operation is known not to have happened: ${describeThrown(cause).message}`, { cause });
  }
}

/**
 * Wraps an error for an operation to throw: its effect is *known* not to have happened, and cannot happen any more. The
 * key is then released and a retry executes (I6). `run` rejects with `error` itself.
 * @example
 * if (error.code === 'ECONNREFUSED') throw notExecuted(error);
 */
export function notExecuted(error: unknown): HeadgateError {
  return new NotExecutedError(error);
}

const OK = 'ok';
const FAILED = 'failed';

export const jsonCodec: ResultCodec<unknown> = {
  // JSON cannot express undefined. The empty text can, because no JSON text is empty.
  serialize: (value) => JSON.stringify(value) ?? '',
  deserialize: (text) => (text === '' ? undefined : JSON.parse(text)),
};

export function encodeValue<T>(value: T, { serialize }: ResultCodec<T>): KeptResult {
  let text: unknown;
  try {
    text = serialize(value);
  } catch {
    // The effect happened: at least its status is stored.
  }
  return { status: OK, value: typeof text === 'string' ? text : undefined };
}

export function encodeFailure(error: unknown): KeptResult {
  return { status: FAILED, value: JSON.stringify(describeThrown(error)) };
}

/** The stored outcome, as a retry gets it. */
export function decodeOutcome<T>(
  text: string,
  status: string,
  { deserialize }: ResultCodec<T>,
): { readonly kind: 'replayed'; readonly value: T } | { readonly kind: 'failed'; readonly error: KeptFailureError } {
  if (status !== FAILED) return { kind: 'replayed', value: deserialize(text) };
  const { name, message } = JSON.parse(text) as { name: string; message: string };
  return { kind: 'failed', error: new KeptFailureError(name, message) };
}

/** The result as it is stored: without its value if that takes more than `maxBytes` in UTF-8 (I7). */
export function boundedResult(result: KeptResult, maxBytes: number): KeptResult {
  const { status, value } = result;
  return value === undefined || fitsInBytes(value, maxBytes) ? result : { status, value: undefined };
}

const encoder = /* @__PURE__ */ new TextEncoder();

/** Whether the text takes at most `maxBytes` in UTF-8. */
export function fitsInBytes(text: string, maxBytes: number): boolean {
  // One UTF-16 unit of a JavaScript string takes one to three bytes, so most texts need not be encoded.
  if (text.length * 3 <= maxBytes) return true;
  return text.length <= maxBytes && encoder.encode(text).length <= maxBytes;
}
