import type { MaybePromise } from '../core/ports.ts';
import type { FailureEvent } from './events.ts';
import type { Resolver } from './options.ts';

/** Which stage something broke in. Stays inside the gate. */
export class StageError extends Error {
  constructor(
    readonly stage: FailureEvent['stage'],
    readonly error: unknown,
  ) {
    super(stage);
  }
}

/** Asks a resolver of the program's: whatever it throws, or rejects with, is a {@link StageError} of that name. */
export function ask<Request, Value>(
  stage: FailureEvent['stage'],
  resolver: Resolver<Request, Value>,
  request: Request,
): MaybePromise<Value> {
  try {
    const value = resolver(request);
    if (!isPromise(value)) return value;
    const told = value.catch((error: unknown) => {
      throw new StageError(stage, error);
    });
    // Another resolver may throw before anybody waits for this one; its rejection must not take the process down.
    told.catch(() => {});
    return told;
  } catch (error) {
    throw new StageError(stage, error);
  }
}

export function isPromise<T>(value: MaybePromise<T>): value is Promise<T> {
  return typeof value === 'object' && value !== null && 'then' in value;
}
