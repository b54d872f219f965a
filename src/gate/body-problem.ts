import { isBodyError } from '../http/body-error.ts';
import { BODY_ERROR_TYPES } from '../http/body-limits.ts';
import type { ErrorStatus } from '../http/error-types.ts';
import type { GateReply } from './gate.ts';
import type { AnswerProblem } from './idempotency-stage.ts';

/** @returns the answer to a request whose body cannot be read; undefined if the error is not the client's fault */
export function problemOfBody(error: unknown, answer: AnswerProblem): GateReply | undefined {
  if (!isBodyError(error) || error.status === 500) return undefined;
  return answer<ErrorStatus>(error.status, BODY_ERROR_TYPES[error.status], error.message);
}
