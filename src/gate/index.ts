/**
 * The events of a gate, and the types of its resolvers, answers and passages. `createGate` is in `headgate`.
 * @module headgate/gate
 */

export type { CooldownReport } from '../limits/cooldown.ts';
export type { CooldownOptions, ProviderResponse } from '../limits/cooldown-options.ts';
export {
  type CooldownEvent,
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
} from './events.ts';
export type { GateAnswer, GateEntry, GateOutcome, GateReply, Passage, Settlement } from './gate.ts';
export type { IdempotentRequest } from './idempotent-request.ts';
export type { NoAccountAnswer, OnNoAccount } from './no-account.ts';
export type { HandlerRejection, HandlerResponse, ProviderAnswers } from './options.ts';
export type { AnswerContext, AnswerFunction, Rejection } from './own-answer.ts';
export type { CapturedResponse, ResponseRecording } from './recording.ts';
export { type RejectionError, rejectionOf } from './rejection-error.ts';
export type { Resolver } from './resolver.ts';
