import { HeadgateError } from '../core/errors.ts';

/** A body that can be sent only once, such as a stream. Nothing was sent. */
export class BodyNotReplayableError extends HeadgateError {
  constructor() {
    super(
      'body_not_replayable',
      'the body can be sent only once: give a string, bytes, a Blob, FormData or URLSearchParams (read a stream first)',
    );
  }
}

/** No attempt had an answer; whether the operation was carried out is unknown. The same request with the same `key` finds out. */
export class RequestFailedError extends HeadgateError {
  constructor(
    readonly key: string,
    readonly attempts: number,
    cause: unknown,
  ) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    super('request_failed', `no answer in ${attempts} attempts with the idempotency key ${key}: ${reason}`, { cause });
  }
}
