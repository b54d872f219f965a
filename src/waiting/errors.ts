import { HeadgateError } from '../base/errors.ts';

/** A job would wait longer than its `maxWaitMs`. It was not charged. */
export class WaitTooLongError extends HeadgateError {
  override readonly name = 'WaitTooLongError';

  constructor(
    /** The least that the job would have waited from now on, in milliseconds. */
    readonly waitMs: number,
    readonly maxWaitMs: number,
  ) {
    super(
      'wait_too_long',
      `the job must wait at least ${waitMs} ms more, and so longer than its maxWaitMs of ${maxWaitMs} ms`,
    );
  }
}

/** As many jobs wait as the worker accepts, or as it accepts of one account now. The job was not charged. */
export class QueueFullError extends HeadgateError {
  override readonly name = 'QueueFullError';

  constructor(
    readonly maxQueue: number,
    /** Jobs of the account that wait already; as many may wait as there is room left for. */
    readonly waitingOfAccount: number,
  ) {
    const reason =
      waitingOfAccount === 0
        ? `${maxQueue} jobs wait already`
        : `${waitingOfAccount} jobs of this account wait already, and it may have no more than there is room left for`;
    super('queue_full', `${reason}: add jobs more slowly, or raise maxQueue`);
  }
}

/** The cost is more than the max of a window (S9, S11), so waiting does not help. The job was not charged. */
export class NeverFitsError extends HeadgateError {
  override readonly name = 'NeverFitsError';

  constructor(
    readonly cost: number,
    /** The max of the window that the cost does not fit into. */
    readonly max: number,
    /** What the window counts; undefined if it counts requests (S33). */
    readonly unit?: string | undefined,
  ) {
    const of = unit === undefined ? '' : ` ${unit}`;
    super('never_fits', `a cost of ${cost}${of} never fits into a window of ${max}${of}: waiting does not help`);
  }
}
