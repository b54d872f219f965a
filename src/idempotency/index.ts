/**
 * The types of claims, of their outcomes and of an operator's tools, and the error of a stored failure. `createIdempotency` is in `headgate`.
 * @module headgate/idempotency
 */

export type { KeptResult, NotedStep, OnOrphan } from '../core/claim.ts';
export type { Timers } from '../core/timers.ts';
export type { Claim, ClaimCompletion, ClaimDispatch, ClaimRelease } from './claim.ts';
export type { IdempotencyEvent } from './events.ts';
export type { KeyOpener, ReleaseOptions } from './idempotency.ts';
export type { NoteOptions } from './note.ts';
export type { OpenedClaim, OpenRequest } from './open.ts';
export type { OperatorCompletion, OperatorRelease } from './operator.ts';
export { KeptFailureError, type ResultCodec } from './outcome.ts';
export type { Reconcile, Reconciled, Reconciliation } from './reconcile.ts';
export type { OrphanReconciliation } from './reconcile-orphan.ts';
export type { Refusal, Refused, Unavailable } from './refusal.ts';
export type { IdempotentOperation, OperationContext } from './run.ts';
export type { ClaimSettings, SettingsInput } from './settings.ts';
