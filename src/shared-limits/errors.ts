import { HeadgateError } from '../base/errors.ts';
import { type Adjustment, type AdjustTarget, targetKey } from '../core/adjustment.ts';

/** The limit was changed since the caller read it. Nothing was changed: look at it again. */
export class AdjustmentConflictError extends HeadgateError {
  override readonly name = 'AdjustmentConflictError';

  constructor(
    readonly target: AdjustTarget,
    /** The current adjustment; undefined if the limit is not adjusted. */
    readonly current: Adjustment | undefined,
  ) {
    const state =
      current === undefined ? 'is not adjusted' : `was changed by ${current.by} (version ${current.version})`;
    super('adjustment_conflict', `the limit ${targetKey(target)} ${state}: look at it, and decide again`);
  }
}

/** The change would lift a limit or move it far, and the caller has not confirmed this. Nothing was changed. */
export class UnconfirmedError extends HeadgateError {
  override readonly name = 'UnconfirmedError';

  /** @param warnings each is a sentence about the effect of the change */
  constructor(readonly warnings: readonly string[]) {
    super('unconfirmed', `${warnings.join(' ')} Pass confirm: true if this is meant.`);
  }
}

/** There are as many adjustments as there may be. Nothing was changed. */
export class TooManyAdjustmentsError extends HeadgateError {
  override readonly name = 'TooManyAdjustmentsError';

  constructor(readonly maxAdjustments: number) {
    const reason = 'reset some, put limits that many accounts share into a customer plan, or raise maxAdjustments';
    super('too_many_adjustments', `there may be ${maxAdjustments} adjustments at most: ${reason}`);
  }
}

/** These shared limits have the option `readOnly`. Nothing was changed. */
export class ReadOnlyError extends HeadgateError {
  override readonly name = 'ReadOnlyError';

  constructor() {
    super('read_only', 'these shared limits only read: make the change in a process without the option readOnly');
  }
}
