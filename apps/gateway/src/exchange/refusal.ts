import type { BodyError, ErrorStatus, ErrorType } from 'headgate/http';
import { createProblem, type Problem } from 'headgate/http';
import { BODY_ERROR_TYPES } from 'headgate/internal';

/** A request that the gateway answers with an error itself, before or instead of forwarding it. */
export interface Refusal {
  /** @param requestId becomes `req_id` */
  problem(requestId: string): Problem;
  readonly status: ErrorStatus;
  readonly type: string;
  /** Whole seconds for the field `retry-after`. */
  readonly retryAfter?: number | undefined;
}

/** A refusal; `type` must be allowed for `status`. */
export function refuse<Status extends ErrorStatus>(status: Status, type: ErrorType<Status>, detail: string): Refusal {
  return { status, type, problem: (requestId) => createProblem(status, type, detail, requestId) as Problem };
}

/** The refusal of a request if there is no room now (503). Nothing was done, so the client may retry soon. */
export function refuseForNow(detail: string): Refusal {
  return { retryAfter: 1, ...refuse(503, 'errors/service_unavailable', detail) };
}

/** The refusal of a request whose body cannot be read. */
export function refuseBody({ status, message }: BodyError): Refusal {
  if (status === 500) return UNEXPECTED;
  return status === 503 ? refuseForNow(message) : refuse<ErrorStatus>(status, BODY_ERROR_TYPES[status], message);
}

/** Whether a stage refused the request. */
export function isRefusal(value: unknown): value is Refusal {
  return typeof value === 'object' && value !== null && 'problem' in value;
}

export const UNEXPECTED = refuse(
  500,
  'errors/unexpected_error',
  'Internal error. The server log has details under this req_id.',
);
