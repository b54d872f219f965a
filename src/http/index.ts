/**
 * The protocol without a framework: rate-limit fields, error objects, idempotency keys, fingerprints.
 * @module headgate/http
 */

export { BodyError, type BodyErrorReason, type BodyErrorStatus, isBodyError } from './body-error.ts';
export type { ErrorStatus, ErrorType, ErrorTypesByStatus, WithErrorTypes } from './error-types.ts';
export { describeDifference } from './fingerprint/difference.ts';
export {
  type ComparedField,
  createFingerprinter,
  type Fingerprint,
  type Fingerprinter,
  type FingerprintOptions,
  type FingerprintRequest,
  fingerprint,
  type RequestHead,
} from './fingerprint/fingerprint.ts';
export { type KeyFault, readIdempotencyKey } from './idempotency-key.ts';
export {
  createProblem,
  jsonReply,
  type Problem,
  type ProblemMediaType,
  type ProblemObject,
  problemReply,
  type Reply,
} from './problem.ts';
export {
  type HeaderFields,
  NUMBER_FIELD_NAMES,
  RATE_LIMIT_FIELD_NAMES,
  type RateLimitFields,
  type RateLimitStyle,
  rateLimitFields,
} from './rate-limit-fields.ts';
export { retryAfterMs } from './retry-after.ts';
export { type KeepField, type ResponseToStore, storedResponse } from './stored-response.ts';
