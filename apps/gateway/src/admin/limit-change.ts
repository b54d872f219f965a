import type { LimitInput } from 'headgate';
import { isHeadgateError } from 'headgate';
import type { AdjustTarget } from 'headgate/limits';
import type { AdjustmentConflictError, Applied, LimitChange, LimitPreview } from 'headgate/shared-limits';
import type { z } from 'zod';
import { InputError } from '../api/input.ts';
import { Answered, type AnswerFields } from '../api/operation.ts';
import { refuse } from '../exchange/refusal.ts';
import { textsOrNull } from '../traffic/limit-entry.ts';
import type { AdminContext } from './context.ts';
import { recommendationFor } from './limit-list.ts';
import type { preconditions } from './limit-schemas.ts';

/** @throws InputError if it names several layers */
export function checkedTarget(given: AdjustTarget): AdjustTarget {
  const of = Object.fromEntries(Object.entries(given).filter(([, name]) => name !== undefined)) as AdjustTarget;
  if (Object.keys(of).filter((field) => field !== 'route').length > 1)
    throw new InputError([{ path: 'target', reason: 'must name only one of account, provider and plan' }]);
  return of;
}

/** @throws InputError */
export function windowsFor(of: AdjustTarget, windows: LimitInput | 'recommended'): LimitInput {
  if (windows !== 'recommended') return windows;
  const recommended = recommendationFor(of);
  if (recommended !== null) return recommended;
  throw new InputError([{ path: 'windows', reason: 'headgate has no recommendation for this limit' }]);
}

/** Adds the provider and plan of each account: what applies to it now depends on them. */
export function withSubjects(
  { accounts }: Pick<AdminContext, 'accounts'>,
  changes: readonly LimitChange[],
): readonly LimitChange[] {
  return changes.map((change) => {
    const { account: id } = change.target;
    const account = id === undefined ? undefined : accounts().find(id);
    return account === undefined ? change : { ...change, subject: { provider: account.provider, plan: account.plan } };
  });
}

/**
 * The version of the limit that the client saw.
 * @throws InputError
 */
export function versionIn({ 'If-Match': match, 'If-None-Match': noneMatch }: z.output<typeof preconditions>) {
  if (noneMatch === undefined) return match === undefined ? undefined : Number(match.slice(1, -1));
  if (match === undefined) return 0;
  throw new InputError([{ path: 'If-None-Match', reason: 'must not be given beside If-Match' }]);
}

/** @throws InputError for a fault of the request, and every other error */
export function refuseChange(error: unknown, etagOf: (of: AdjustTarget) => AnswerFields): Answered {
  if (isHeadgateError(error, 'adjustment_conflict')) {
    const { target, message } = error as AdjustmentConflictError;
    return new Answered(refuse(412, 'errors/precondition_failed', message), etagOf(target));
  }
  if (isHeadgateError(error, 'too_many_adjustments'))
    return new Answered(refuse(409, 'errors/conflict', error.message), {});
  if (isHeadgateError(error, 'unconfirmed')) throw new InputError([{ path: 'confirm', reason: error.message }]);
  if (isHeadgateError(error, 'invalid_option') || isHeadgateError(error, 'invalid_limit'))
    throw new InputError([{ path: '', reason: error.message }]);
  throw error;
}

export function shownPreview({ target, before, after, warnings }: LimitPreview) {
  return { target, before: textsOrNull(before), after: textsOrNull(after), warnings: [...warnings] };
}

export function shownApplied({ instances, of, missing }: Applied) {
  return { instances, of, missing: [...missing] };
}
