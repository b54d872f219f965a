import { describe } from '../base/errors.ts';
import { type Adjustment, type AdjustTarget, placeOfTarget } from '../core/adjustment.ts';
import { formatWindow, type Limit } from '../core/limit.ts';
import { NO_LAYER } from '../limits/layers.ts';
import type { WindowSets } from '../limits/window-sets.ts';
import type { CheckedChange } from './change.ts';
import { sourcesOf } from './explanation.ts';

/** The effect that a change would have on one limit. */
export interface LimitPreview {
  readonly target: AdjustTarget;
  /**
   * The windows that apply now: the layer's own, or the default layer's. An account's come from its provider and
   * plan too, if the change names a `subject`. Undefined if there is no such limit, or if it is not known, because the
   * base is a function.
   */
  readonly before: Limit | undefined;
  /** The windows that would apply. */
  readonly after: Limit | undefined;
  /** The current adjustment. */
  readonly adjustment: Adjustment | undefined;
  /** Sentences about what could be a mistake. The change needs `confirm: true` if there is one. */
  readonly warnings: readonly string[];
}

const DEFAULT_LAYER = { layer: 'default', name: '' } as const;
/** A factor above this is rather a slip of the hand than a decision. */
const MAX_FACTOR = 10;

/** @param adjustments those that apply now, by `targetKey` */
export function previewChange(
  { key, target, subject, windows }: CheckedChange,
  windowSets: WindowSets,
  adjustments: ReadonlyMap<string, Adjustment>,
): LimitPreview {
  const defaults = windowSets.layer(DEFAULT_LAYER);
  const group = defaults && target.account && windowSets.groupLayer(target.account, defaults);
  const limit = group ? target : { ...subject, ...target };
  const sources = sourcesOf(limit, windowSets, group || defaults, adjustments, Boolean(group));
  const adjustment = adjustments.get(key);
  const before = sources[0]?.windows;
  const afterReset = adjustment === undefined ? sources : sources.filter((each) => each.adjustment !== adjustment);
  const after = windows ?? afterReset[0]?.windows;
  const warnings = windows === undefined ? [] : warningsOf(target, before, windows);
  if ((windows ?? adjustment) !== undefined) warnings.push(...warningsOfPlan(target, windowSets));
  return { target, before, after, adjustment, warnings };
}

function warningsOf(target: AdjustTarget, before: Limit | undefined, after: Limit): string[] {
  const place = placeOfTarget(target);
  const isOfMany = target.account === undefined;
  const warnings: string[] = [];
  if (isOfMany && after.length === 0) warnings.push(`${place} would be removed for every account that it applies to.`);
  if (after.some(({ max }) => max === 0))
    warnings.push(
      `${place} would reject every request of ${isOfMany ? 'every account that it applies to' : 'the account'}.`,
    );
  for (const unit of new Set(after.map((window) => window.unit))) {
    const [was, is] = [rateOf(before, unit), rateOf(after, unit)];
    if (was > 0 && is > 0 && (is > was * MAX_FACTOR || was > is * MAX_FACTOR)) {
      const factor = Math.round(Math.max(is / was, was / is));
      const change = is > was ? 'more' : 'less';
      const of = unit === undefined ? '' : ` ${unit}`;
      const texts = `${textOf(before)} would become ${textOf(after)}`;
      warnings.push(`${place} would allow ${factor} times ${change}${of}: ${texts}.`);
    }
  }
  return warnings;
}

/** A plan that the base does not list exists only as long as a limit of it is adjusted. */
function warningsOfPlan({ plan }: AdjustTarget, windowSets: WindowSets): string[] {
  // A base that is a function is asked about every plan.
  if (plan === undefined || windowSets.layer(DEFAULT_LAYER) === undefined) return [];
  const layer = windowSets.layer({ layer: 'plan', name: plan });
  if (layer !== undefined && layer.unadjusted !== NO_LAYER) return [];
  return [`limits.plans does not have ${describe(plan)}: its requests fail once no limit of it is adjusted any more.`];
}

/** Requests, or what a unit counts, per millisecond in the long run; 0 without such a window. */
function rateOf(limit: Limit | undefined, unit: string | undefined): number {
  const windows = (limit ?? []).filter((window) => window.unit === unit);
  return windows.length === 0 ? 0 : Math.min(...windows.map(({ max, durationMs }) => max / durationMs));
}

function textOf(limit: Limit | undefined): string {
  return (limit ?? []).map(formatWindow).join(', ');
}
