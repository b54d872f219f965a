import { HeadgateError } from '../base/errors.ts';
import { describeThrown } from '../base/thrown.ts';

/** The body can be sent only once, as a stream can. Nothing was sent. */
export class BodyNotReplayableError extends HeadgateError {
  override readonly name = 'BodyNotReplayableError';

  constructor() {
    super(
      'body_not_replayable',
      'init.body: can be sent only once (expected text, bytes, Blob, FormData or URLSearchParams; read a stream first)',
    );
  }
}

/**
 * The last attempt got no response, so it is unknown whether the operation was executed. To find out, send the same
 * request with the same `key` again.
 */
export class RequestFailedError extends HeadgateError {
  override readonly name = 'RequestFailedError';

  constructor(
    readonly key: string,
    readonly attempts: number,
    cause: unknown,
  ) {
    const reason = describeThrown(cause).message;
    super('request_failed', `no response after ${attempts} attempts with the idempotency key ${key}: ${reason}`, {
      cause,
    });
  }
}
