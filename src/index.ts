/**
 * Limits, idempotency keys, and the gate that puts both in front of an HTTP handler. The other subpaths export stores,
 * adapters, and the types and tools of special tasks.
 * @module headgate
 */

export {
  ClockError,
  ClosedError,
  CostError,
  HeadgateError,
  type HeadgateErrorCode,
  isHeadgateError,
  LimitError,
  OptionError,
  ReceiptError,
  ResultUnavailableError,
  ScopeFullError,
  StoreFullError,
  StoreNotSynchronousError,
  StoreTimeoutError,
  StoreUnavailableError,
  SubjectError,
  UnknownLaneError,
  UnknownPlanError,
} from './base/errors.ts';
export type { Logger } from './base/logger.ts';
export type { Decision, DecisionPart, WindowStatus } from './core/decision.ts';
export { formatDuration, parseDuration } from './core/duration.ts';
export { formatWindow, type LimitInput, parseLimit } from './core/limit.ts';
export type { Cost, UnitCosts } from './core/unit.ts';
export { createGate } from './gate/create-gate.ts';
export type { Gate } from './gate/gate.ts';
export type { GateOptions } from './gate/options.ts';
export type { RouteOptions } from './gate/route-options.ts';
export { createIdempotency, type Idempotency, type IdempotencyOptions } from './idempotency/idempotency.ts';
export { notExecuted } from './idempotency/outcome.ts';
export type { RunOptions, RunResult } from './idempotency/run.ts';
export { createLimiter } from './limits/limiter.ts';
export type { Limiter, LimiterOptions, LimitRequest } from './limits/ports.ts';
export type { Limits, Subject } from './limits/window-set-source.ts';
