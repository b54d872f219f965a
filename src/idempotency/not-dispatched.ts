import { HeadgateError } from '../base/errors.ts';

/** `dispatch()` rejects with this error if the effect must not happen. Nothing of it may be caught. */
export class NotDispatchedError extends HeadgateError {
  override readonly name = 'NotDispatchedError';

  constructor(reason: string, cause?: unknown) {
    super('not_dispatched', `the effect must not happen: ${reason}`, cause === undefined ? undefined : { cause });
  }
}
