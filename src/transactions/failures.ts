import { RolledBackError } from '../idempotency/rolled-back.ts';
import { codeOf, isOfStatement } from '../stores/postgres/errors.ts';

/** SQLSTATEs of a transaction that failed only because of others: serialization_failure and deadlock_detected. */
const CONFLICTS: readonly unknown[] = ['40001', '40P01'];
/** How often a transaction is repeated that the server rolled back because of others. */
export const MAX_RETRIES = 3;
/** ORMs put the error of the server into an error of their own. */
const MAX_CAUSES = 5;

/** Whether a transaction can be repeated: the server rolled it back because of others. */
export function isConflict(error: unknown): boolean {
  let current: unknown = error;
  for (let i = 0; i < MAX_CAUSES && typeof current === 'object' && current !== null; i++) {
    if (CONFLICTS.includes(codeOf(current))) return true;
    const { cause, driverError } = current as { readonly cause?: unknown; readonly driverError?: unknown };
    current = driverError ?? cause;
  }
  return false;
}

/** Whether the server refused the transaction for a reason that a retry does not change, such as a constraint. */
export function isRefused(error: unknown): boolean {
  return error instanceof RolledBackError || (isOfStatement(error) && !isConflict(error));
}
