export type { ErrorStatus, ErrorType, ErrorTypesByStatus } from './error-types.ts';
export { createProblem, type Problem, type ProblemMediaType, problemReply, type Reply } from './problem.ts';
export {
  type HeaderFields,
  RATE_LIMIT_FIELD_NAMES,
  type RateLimitFields,
  rateLimitFields,
} from './rate-limit-fields.ts';
