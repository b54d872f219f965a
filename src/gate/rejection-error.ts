import { HeadgateError, isHeadgateError } from '../base/errors.ts';
import type { Problem, Reply } from '../http/problem.ts';
import type { HeaderFields } from '../http/rate-limit-fields.ts';
import type { Rejection } from './own-answer.ts';

/**
 * An error answer of a gate, for the framework's own error handling: see the option `rejection`. Frameworks read
 * `status`, `statusCode`, `headers` and `expose` of an error.
 */
export class RejectionError extends HeadgateError {
  override readonly name = 'RejectionError';
  readonly status: number;
  readonly statusCode: number;
  /** `cache-control: no-store`, and after a rejection `retry-after` and the rate-limit fields; names in lower case. */
  readonly headers: HeaderFields;
  /** The message may be shown to the client. */
  readonly expose = true;

  constructor(
    /** The error object that the gate would have sent. */
    readonly problem: Problem,
    { headers }: Reply,
    /** The decision that rejected the request; undefined if no limit rejected it. */
    readonly decision: Rejection | undefined,
  ) {
    super('rejected', problem.detail ?? problem.title);
    this.status = problem.status;
    this.statusCode = problem.status;
    const { 'content-type': _type, 'content-length': _length, ...others } = headers as HeaderFields;
    this.headers = others;
  }
}

/**
 * The rejection that an error handler got: the error itself, or the cause of the exception that the adapter made for
 * its framework. Undefined for any other error.
 */
export function rejectionOf(error: unknown): RejectionError | undefined {
  const found = [error, (error as { cause?: unknown } | null | undefined)?.cause].find((one) =>
    isHeadgateError(one, 'rejected'),
  );
  return found as RejectionError | undefined;
}
