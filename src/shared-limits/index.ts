/**
 * Limits that every process with the same store obeys, and that operators adjust at run time.
 * @module headgate/shared-limits
 */

export type { AdjustedLimit, Adjustment, AdjustmentEntry, AdjustTarget } from '../core/adjustment.ts';
export type { WindowSetSource } from '../limits/window-set-source.ts';
export type { AccountSubject, ChangeOptions, KnownLimit, LimitChange, PutOptions } from './change.ts';
export { createSharedLimits } from './create-shared-limits.ts';
export { AdjustmentConflictError, ReadOnlyError, TooManyAdjustmentsError, UnconfirmedError } from './errors.ts';
export type { LimitOrigin, LimitSource } from './explanation.ts';
export type { KeptFile } from './ports.ts';
export type { LimitPreview } from './preview.ts';
export type {
  Applied,
  Changed,
  HistoryQuery,
  Instance,
  SharedLimits,
  SharedLimitsEvent,
  SharedLimitsOptions,
  SharedLimitsState,
} from './shared-limits.ts';
