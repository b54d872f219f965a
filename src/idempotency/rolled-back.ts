import { HeadgateError } from '../base/errors.ts';

/** The transaction of an idempotency key was rolled back: nothing of it remains, and the key is free. */
export class RolledBackError extends HeadgateError {
  override readonly name = 'RolledBackError';

  constructor(reason: string) {
    super('rolled_back', `the transaction was rolled back: ${reason}`);
  }
}
