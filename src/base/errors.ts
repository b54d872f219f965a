import { describeThrown } from './thrown.ts';

/** The kind of an error, for `switch`. Stable across versions. */
export type HeadgateErrorCode =
  | 'invalid_limit'
  | 'invalid_option'
  | 'invalid_subject'
  | 'unknown_plan'
  | 'unknown_lane'
  | 'invalid_cost'
  | 'invalid_clock'
  | 'invalid_receipt'
  | 'store_full'
  | 'scope_full'
  | 'store_timeout'
  | 'store_unavailable'
  | 'store_setup'
  | 'result_unavailable'
  | 'store_not_synchronous'
  | 'claim_lost'
  | 'rows_failed'
  | 'rolled_back'
  | 'not_dispatched'
  | 'not_executed'
  | 'kept_failure'
  | 'body_not_replayable'
  | 'request_failed'
  | 'wait_too_long'
  | 'queue_full'
  | 'never_fits'
  | 'adjustment_conflict'
  | 'unconfirmed'
  | 'too_many_adjustments'
  | 'read_only'
  | 'unreadable_trace'
  | 'rejected'
  | 'closed';

const BRAND = Symbol.for('headgate.error');

/**
 * Base class of every error that headgate throws. A rejection by a limit is a return value, never an error,
 * unless a gate is told to throw it.
 * Check errors with {@link isHeadgateError}: `instanceof` fails if two copies of the package are loaded (ESM and CJS).
 *
 * An error never keeps the rejected value as a property: logs print errors, and a client holds a password. The message
 * shows the given value, as far as it cannot be a secret.
 */
export class HeadgateError extends Error {
  /** Written out in every class: minifiers shorten the names of classes, and logs show this one. */
  override readonly name: string = 'HeadgateError';
  readonly code: HeadgateErrorCode;
  /** @internal */
  readonly [BRAND] = true;

  constructor(code: HeadgateErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** An invalid limit, window or duration. The message names the limit and the value (S3). */
export class LimitError extends HeadgateError {
  override readonly name = 'LimitError';

  constructor(
    /** Place of the invalid value, e.g. `limits.routes["POST /x"][1]`. */
    readonly place: string,
    value: unknown,
    reason: string,
  ) {
    super('invalid_limit', `${place}: ${reason}, got ${describe(value)}`);
  }
}

/** An invalid option. The message names the option and the value. */
export class OptionError extends HeadgateError {
  override readonly name = 'OptionError';

  /** @param shown how the message shows the value; pass it if the value can hold a secret */
  constructor(
    readonly option: string,
    value: unknown,
    reason: string,
    shown: string = describe(value),
    options?: ErrorOptions,
  ) {
    super('invalid_option', `${option}: ${reason}, got ${shown}`, options);
  }
}

/** An account, route, provider, customer's plan, lane or group that is not a string, or not allowed. Nothing was charged. */
export class SubjectError extends HeadgateError {
  override readonly name = 'SubjectError';

  constructor(
    readonly field: string,
    value: unknown,
    advice?: string,
    rule = 'must be a string',
  ) {
    super('invalid_subject', `${field} ${rule}, got ${describe(value)}${advice === undefined ? '' : `: ${advice}`}`);
  }
}

/** Longest list of names in a message. */
const MAX_NAMES = 10;

/**
 * A customer's plan that is missing in `limits.plans`. Nothing was charged. The default limits do not apply instead:
 * they may allow more than the plan that was meant.
 */
export class UnknownPlanError extends HeadgateError {
  override readonly name = 'UnknownPlanError';

  constructor(plan: string, known: readonly string[]) {
    super('unknown_plan', `unknown plan ${describe(plan)}: limits.plans has ${listOf(known)}`);
  }
}

/**
 * A lane that is missing in `limits.lanes` (S28). Nothing was charged. The request is not decided as if it had no lane:
 * it could use what is reserved for others then.
 */
export class UnknownLaneError extends HeadgateError {
  override readonly name = 'UnknownLaneError';

  constructor(lane: string, known: readonly string[]) {
    super('unknown_lane', `unknown lane ${describe(lane)}: limits.lanes has ${listOf(known)}`);
  }
}

function listOf(names: readonly string[]): string {
  const others = names.length > MAX_NAMES ? ', …' : '';
  return `${names.slice(0, MAX_NAMES).map(describe).join(', ') || 'none'}${others}`;
}

/**
 * A cost that is not a safe integer, or below the least: 1, or 0 if a decision is settled (S11); or that names a unit
 * which no window counts (S33). Nothing was charged.
 */
export class CostError extends HeadgateError {
  override readonly name = 'CostError';

  constructor(
    cost: unknown,
    least: 0 | 1 = 1,
    place = 'cost',
    reason = `must be an integer from ${least} to ${Number.MAX_SAFE_INTEGER}`,
  ) {
    super('invalid_cost', `${place} ${reason}, got ${describe(cost)}`);
  }
}

/** A clock whose `now()` is not an integer number of milliseconds (S15). Nothing was charged. */
export class ClockError extends HeadgateError {
  override readonly name = 'ClockError';

  constructor(now: unknown) {
    super('invalid_clock', `clock.now() must return integer milliseconds, got ${describe(now)}`);
  }
}

/** A receipt that is forged, damaged, too long, or signed with another secret. Nothing was settled. */
export class ReceiptError extends HeadgateError {
  override readonly name = 'ReceiptError';

  /** @param reason what is wrong with it; never the receipt, which may be a client's text */
  constructor(reason: string) {
    super('invalid_receipt', `the receipt ${reason}`);
  }
}

/** A bounded store is full, and every key that it checked is active (S18, I13). Nothing was charged or claimed. */
export class StoreFullError extends HeadgateError {
  override readonly name = 'StoreFullError';

  /** @param what the store is full of */
  constructor(
    readonly maxKeys: number,
    what: 'keys' | 'settled receipts' | 'requests in flight' = 'keys',
  ) {
    const advice = what === 'keys' ? ': raise maxKeys (active keys are never evicted)' : ', and are never evicted';
    super('store_full', `the store is full with ${maxKeys} ${what}, and those that it checked are active${advice}`);
  }
}

/**
 * A scope has as many claims as one scope may have now, and none of them can be forgotten (I13). Nothing was claimed.
 * Other scopes are not affected.
 */
export class ScopeFullError extends HeadgateError {
  override readonly name = 'ScopeFullError';

  constructor(
    readonly maxClaimsPerScope: number,
    /** About how long until one of the claims expires, in milliseconds. */
    readonly retryAfterMs: number,
  ) {
    const reason =
      'all of them in progress or completed: raise maxClaimsPerScope or maxKeys (such claims are never evicted)';
    super('scope_full', `the scope is full with ${maxClaimsPerScope} idempotency keys, ${reason}`);
  }
}

/** A store did not answer in time. The command may still be executed, so it is unknown whether anything was charged. */
export class StoreTimeoutError extends HeadgateError {
  override readonly name = 'StoreTimeoutError';

  constructor(readonly deadlineMs: number) {
    super('store_timeout', `the store did not answer within ${deadlineMs} ms`);
  }
}

/** A store failed or cannot be reached, see `cause`. Nothing was charged; unknown if `cause` is a timeout. */
export class StoreUnavailableError extends HeadgateError {
  override readonly name = 'StoreUnavailableError';

  /** False if the command never left this process: the store did not execute it, and will not execute it. */
  readonly sent: boolean;

  constructor(cause: unknown, { sent = true }: { readonly sent?: boolean } = {}) {
    super('store_unavailable', `the store is unavailable: ${describeThrown(cause).message}`, { cause });
    this.sent = sent;
  }
}

/**
 * The claim is completed, but the store cannot return its result now, see `cause`. The operation must not run: retry
 * later for the result.
 */
export class ResultUnavailableError extends HeadgateError {
  override readonly name = 'ResultUnavailableError';

  constructor(cause: unknown) {
    super('result_unavailable', `the stored result cannot be read now: ${describeThrown(cause).message}`, { cause });
  }
}

/** `consumeSync` was called with a store that returns promises. */
export class StoreNotSynchronousError extends HeadgateError {
  override readonly name = 'StoreNotSynchronousError';

  constructor() {
    super(
      'store_not_synchronous',
      'consumeSync needs a synchronous store such as createMemoryStore(): call consume instead',
    );
  }
}

/** A method was called after `close()`. */
export class ClosedError extends HeadgateError {
  override readonly name = 'ClosedError';

  constructor(what: string) {
    super('closed', `${what} was closed: create a new one`);
  }
}

/** Whether `value` is an error of headgate (of any copy of the package) with this code, if a code is given. */
export function isHeadgateError(value: unknown, code?: HeadgateErrorCode): value is HeadgateError {
  try {
    const error: object = Object(value);
    return BRAND in error && (code === undefined || (error as HeadgateError).code === code);
  } catch {
    // A proxy that was revoked, or whose traps throw, cannot be read.
    return false;
  }
}

/**
 * A value as an error message shows it: long strings are cut, and objects are only named. Of a URL only the scheme is
 * shown, because the rest can contain a password.
 */
export function describe(value: unknown): string {
  if (typeof value === 'string') {
    const scheme = value.indexOf('://');
    const length = scheme < 0 ? 80 : Math.min(80, scheme + 3);
    return JSON.stringify(value.length > length ? `${value.slice(0, length)}…` : value);
  }
  if (typeof value === 'function') return 'a function';
  if (value instanceof Promise) return 'a promise (is await missing?)';
  if (typeof value === 'object' && value !== null) return Array.isArray(value) ? 'an array' : 'an object';
  return typeof value === 'bigint' ? `${value}n` : String(value);
}
