/**
 * SQLSTATE codes and classes after which the same statement may succeed later: connection lost (08), server shutting
 * down or starting (57P), statement cancelled by its time-out (57014), too many connections or no disk space (53),
 * failover to a read-only server (25006), deadlock or serialization failure (40).
 */
const TRANSIENT_STATE = /^(?:08...|57P0.|57014|53...|25006|40...)$/;

/** Codes of Node.js for a connection that cannot be made or that ended. */
const NETWORK_CODE = /^(?:ECONNREFUSED|ECONNRESET|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN)$/;

/** Codes of headgate's stores, in the database or in Redis. */
const STORE_CODE = /^store_(?:timeout|unavailable)$/;

/** Errors without a code, of pg, its pool, Kysely and PGlite. */
const MESSAGE =
  /^(?:Connection terminated|Client has encountered a connection error|timeout exceeded when trying to connect|Query read timeout|Cannot use a pool after calling end|driver has already been destroyed|PGlite is clos)/;

/** Whether an error says that the database cannot be used now. A retry may succeed. */
export function isUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  // A host with several addresses reports one error per address.
  if (error instanceof AggregateError && error.errors.length > 0) return error.errors.every(isUnavailable);
  const { code } = error as { readonly code?: unknown };
  if (typeof code === 'string' && [TRANSIENT_STATE, NETWORK_CODE, STORE_CODE].some((known) => known.test(code)))
    return true;
  return MESSAGE.test(error.message);
}
