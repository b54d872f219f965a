import type { Decision } from '../core/decision.ts';
import type { WindowSet } from '../core/window-set.ts';
import type { LimitRequest } from '../limits/limiter.ts';

/** One call of `acquire` that waits for its decision. */
export interface Job {
  readonly request: LimitRequest;
  readonly cost: number;
  /** The windows that the job must fit, as they were when it came. */
  readonly windowSet: WindowSet;
  readonly maxWaitMs: number;
  /** When `maxWaitMs` is over, on the worker's clock. */
  readonly deadline: number;
  resolve(decision: Decision): void;
  reject(reason: unknown): void;
}

/** Whether a decision for one job could as well be one for the other. Both are of the same account and route. */
export function areAlike(one: Job, other: Job): boolean {
  return one.cost === other.cost && one.windowSet === other.windowSet;
}
