/**
 * Limits, idempotency keys, and the gate that puts both in front of an HTTP handler. The contracts of stores are in
 * `headgate/stores`.
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
  ResultUnavailableError,
  ScopeFullError,
  StoreFullError,
  StoreNotSynchronousError,
  StoreTimeoutError,
  StoreUnavailableError,
  SubjectError,
  UnknownPlanError,
} from './base/errors.ts';
export type { Logger } from './base/logger.ts';
export type { AdjustTarget } from './core/adjustment.ts';
export type { Block, BlockTarget } from './core/block.ts';
export type { KeptResult, OnOrphan } from './core/claim.ts';
export { type Clock, monotonicClock } from './core/clock.ts';
export type { Decision, WindowStatus } from './core/decision.ts';
export { formatDuration, parseDuration } from './core/duration.ts';
export {
  formatWindow,
  type Limit,
  type LimitInput,
  type LimitName,
  parseLimit,
  type Window,
  type WindowInput,
} from './core/limit.ts';
export { type MisuseCode, MisuseWarning } from './core/misuse.ts';
export { createGate } from './gate/create-gate.ts';
export {
  type DecisionEvent,
  type FailureEvent,
  GATE_CHANNEL,
  type GateEvent,
  type IdempotencyOutcomeEvent,
  type ProviderRejectedEvent,
  type RefundEvent,
  type RefusedEvent,
  type SettledEvent,
  type SkippedEvent,
} from './gate/events.ts';
export type { Answer, Entry, Gate, Outcome, Passage, Settlement } from './gate/gate.ts';
export type { IdempotentRequest } from './gate/idempotent-request.ts';
export type { NoAccountAnswer, OnNoAccount } from './gate/no-account.ts';
export type { GateOptions, HandlerRejection, HandlerResponse } from './gate/options.ts';
export type { AnswerContext, AnswerFunction, Rejection } from './gate/own-answer.ts';
export type { CapturedResponse, Recording } from './gate/recording.ts';
export type { Resolver } from './gate/resolver.ts';
export type { RouteOptions } from './gate/route-options.ts';
export type { Claim, Completion, Dispatch, Release } from './idempotency/claim.ts';
export type { IdempotencyEvent } from './idempotency/events.ts';
export { createIdempotency, type Idempotency, type IdempotencyOptions } from './idempotency/idempotency.ts';
export type { Opened, OpenRequest } from './idempotency/open.ts';
export type { OperatorCompletion, OperatorRelease } from './idempotency/operator.ts';
export { type Codec, KeptFailureError, notExecuted } from './idempotency/outcome.ts';
export type { Reconcile, Reconciled, Reconciliation } from './idempotency/reconcile.ts';
export type { Refusal, Refused, Unavailable } from './idempotency/refusal.ts';
export type { Operation, OperationContext, RunOptions, RunResult } from './idempotency/run.ts';
export type { ClaimSettings, SettingsInput } from './idempotency/settings.ts';
export type { Timers } from './idempotency/timers.ts';
export type { LayeredLimits, LimitSet, ScopedLimitInput } from './limits/layers.ts';
export { createLimiter, type Limiter, type LimiterOptions, type LimitRequest } from './limits/limiter.ts';
export type { Limits, Subject, WindowSetSource } from './limits/window-sets.ts';
export { NeverFitsError, QueueFullError, WaitTooLongError } from './waiting/errors.ts';
export { type AcquireOptions, createWorker, type Worker, type WorkerOptions } from './waiting/worker.ts';
