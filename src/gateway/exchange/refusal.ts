import type { ErrorStatus, ErrorType } from '../../http/error-types.ts';
import { createProblem, type Problem } from '../../http/problem.ts';

/** The gateway's own "no", at any stage, as it becomes the error object. */
export interface Refusal {
  /** @param requestId becomes `req_id` */
  problem(requestId: string): Problem;
  readonly status: ErrorStatus;
}

/** A refusal; `type` must be one that `status` may have. */
export function refuse<Status extends ErrorStatus>(status: Status, type: ErrorType<Status>, detail: string): Refusal {
  return { status, problem: (requestId) => createProblem(status, type, detail, requestId) as Problem };
}

/** Whether a stage said no. */
export function isRefusal(value: unknown): value is Refusal {
  return typeof value === 'object' && value !== null && 'problem' in value;
}
