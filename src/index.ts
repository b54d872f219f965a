/**
 * Limits, idempotency, and the gate that joins both in front of HTTP.
 * @module headgate
 */

export type {
  AbandonCommand,
  AbandonReply,
  BeginCommand,
  BeginReply,
  ClaimCommand,
  CompleteCommand,
  CompleteReply,
  HeldCommand,
  HeldReply,
  KeptResult,
  OnOrphan,
} from './core/claim.ts';
export { type Clock, monotonicClock } from './core/clock.ts';
export type { Decision, WindowStatus } from './core/decision.ts';
export { formatDuration, parseDuration } from './core/duration.ts';
export {
  ClockError,
  ClosedError,
  CostError,
  HeadgateError,
  type HeadgateErrorCode,
  isHeadgateError,
  LimitError,
  OptionError,
  StoreFullError,
  StoreNotSynchronousError,
  StoreTimeoutError,
  StoreUnavailableError,
  SubjectError,
} from './core/errors.ts';
export {
  formatWindow,
  type Limit,
  type LimitInput,
  type LimitName,
  parseLimit,
  type Window,
  type WindowInput,
} from './core/limit.ts';
export { type AllMethodsScope, createPlan, type Plan, type PlanWindow } from './core/plan.ts';
export type {
  ClaimId,
  ClaimStore,
  ClaimView,
  LimitStore,
  MaybePromise,
  ResetTarget,
  SynchronousLimitStore,
} from './core/ports.ts';
export { createGate } from './gate/create-gate.ts';
export {
  type DecisionEvent,
  type FailureEvent,
  GATE_CHANNEL,
  type GateEvent,
  type IdempotencyOutcomeEvent,
  type ProviderRejectedEvent,
  type RefundEvent,
  type SkippedEvent,
} from './gate/events.ts';
export type { Answer, Entry, Gate, Outcome, Passage, Settlement } from './gate/gate.ts';
export type { IdempotentRequest } from './gate/idempotent-request.ts';
export type { GateOptions } from './gate/options.ts';
export type { CapturedResponse, Recording } from './gate/recording.ts';
export type { Resolver } from './gate/resolver.ts';
export type { RouteOptions } from './gate/route-options.ts';
export {
  type Claim,
  type ClaimSettings,
  type Codec,
  type Completion,
  createIdempotency,
  type Dispatch,
  type Idempotency,
  type IdempotencyEvent,
  type IdempotencyOptions,
  KeptFailureError,
  notExecuted,
  type Opened,
  type OpenRequest,
  type Operation,
  type OperationContext,
  type OperatorCompletion,
  type OperatorRelease,
  type Reconcile,
  type Reconciled,
  type Reconciliation,
  type Refusal,
  type Refused,
  type Release,
  type RunOptions,
  type RunResult,
  type SettingsInput,
  type Timers,
  type Unavailable,
} from './idempotency/idempotency.ts';
export type { LayeredLimits, LimitSet, ScopedLimitInput } from './limits/layers.ts';
export { createLimiter, type Limiter, type LimiterOptions, type LimitRequest } from './limits/limiter.ts';
export type { AdjustTarget, Limits, Subject } from './limits/plans.ts';
export { type Provider, recommendedLimits } from './limits/recommended.ts';
