/**
 * For authors of stores: the contracts, and the rules as pure functions that a store can call. The suites of
 * `headgate/testing` prove a store.
 * @module headgate/stores
 */

export {
  ResultUnavailableError,
  ScopeFullError,
  StoreFullError,
  StoreTimeoutError,
  StoreUnavailableError,
} from './base/errors.ts';
export type { MaybePromise } from './base/maybe-promise.ts';
export {
  type AdjustedLimit,
  type Adjustment,
  type AdjustmentEntry,
  type AdjustmentState,
  type AdjustTarget,
  applyEntry,
  type Head,
  isSameHead,
  MAX_RECENT,
  targetKey,
} from './core/adjustment.ts';
export type { Block, BlockTarget, FreshStart } from './core/block.ts';
export { BlockedDecision } from './core/blocked-decision.ts';
export {
  type AbandonCommand,
  type AbandonReply,
  abandon as abandonClaim,
  type BeginCommand,
  type BeginReply,
  begin as beginClaim,
  type ClaimCommand,
  type ClaimRecord,
  type ClaimStep,
  type CompleteCommand,
  type CompleteReply,
  complete as completeClaim,
  dispatch as dispatchClaim,
  extend as extendClaim,
  type HeldCommand,
  type HeldReply,
  type KeptResult,
  type OnOrphan,
  unexpired as claimRecordAt,
} from './core/claim.ts';
export {
  type CooldownChange,
  type CooldownCommand,
  type CooldownMark,
  type CooldownReply,
  changeCooldown,
  type StartCooldown,
} from './core/cooldown.ts';
export { charge, countFitting, Decision, evaluate, FITS, type WindowStatus, windowStatus } from './core/decision.ts';
export type {
  ClaimId,
  ClaimPage,
  ClaimStore,
  ClaimView,
  LeaseGrant,
  LimitStore,
  ListedClaim,
  ReadyOptions,
  ResetTarget,
  SynchronousLimitStore,
} from './core/ports.ts';
export { IN_FLIGHT_LIMITS, type InFlight, type Slot, type SlotReply } from './core/slot.ts';
export { addBeyond, type Counters, NEVER, SLOTS_PER_WINDOW, settleWindow } from './core/window.ts';
export {
  type AllMethodsScope,
  createWindowSet,
  type NamedWindow,
  type ShownWindow,
  type WindowSet,
} from './core/window-set.ts';
export type { AdjustmentReply, UnreadableAdjustments } from './shared-limits/lineage.ts';
export type { AdjustmentInstance, AdjustmentStore } from './shared-limits/ports.ts';
