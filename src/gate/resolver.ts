import { isPromise, type MaybePromise } from '../base/maybe-promise.ts';
import type { FailureEvent } from './events.ts';

/** Reads something from a request; may be asynchronous. */
export type Resolver<Request, Value> = (request: Request) => MaybePromise<Value>;

/** Wraps an error with the stage that failed. Used only inside the gate. */
export class StageError extends Error {
  constructor(
    readonly stage: FailureEvent['stage'],
    readonly error: unknown,
  ) {
    super(stage);
  }
}

/** Calls a resolver. Any error that it throws or rejects with becomes a {@link StageError} of the given stage. */
export function callResolver<Request, Value>(
  stage: FailureEvent['stage'],
  resolver: Resolver<Request, Value>,
  request: Request,
): MaybePromise<Value> {
  try {
    const value = resolver(request);
    if (!isPromise(value)) return value;
    const wrapped = value.catch((error: unknown) => {
      throw new StageError(stage, error);
    });
    // Another resolver may throw before this promise is awaited. An unhandled rejection would end the process.
    wrapped.catch(() => {});
    return wrapped;
  } catch (error) {
    throw new StageError(stage, error);
  }
}
