import type { Adjustment, AdjustTarget } from '../../core/adjustment.ts';
import { layerOf } from '../../core/adjustment.ts';
import { formatWindow, type Limit } from '../../core/limit.ts';
import type { LimitLayer } from '../layers.ts';
import { type Plans, placeOfTarget } from '../plans.ts';
import type { CheckedChange } from './change.ts';

/** What a change would do to one limit. */
export interface LimitPreview {
  readonly target: AdjustTarget;
  /**
   * The windows that apply now, the layer's own or those of the default layer. Undefined if there is no such limit, or
   * if it is not known, because the base is a function.
   */
  readonly before: Limit | undefined;
  /** The windows that would apply. */
  readonly after: Limit | undefined;
  /** The current adjustment. */
  readonly adjustment: Adjustment | undefined;
  /** Sentences about what could be a mistake. The change needs `confirm: true` if there is one. */
  readonly warnings: readonly string[];
}

/** A factor above this is rather a slip of the hand than a decision. */
const MAX_FACTOR = 10;

/** @param adjustment the current one */
export function previewChange(
  { target, windows }: CheckedChange,
  plans: Plans,
  adjustment: Adjustment | undefined,
): LimitPreview {
  const own = layerOf(target);
  const layers = [plans.layer(own), plans.layer({ layer: 'default', name: '' })];
  const base = [layers[0]?.unadjusted, layers[1]];
  const before = firstLimit(layers, target.route);
  const after = windows ?? firstLimit(own.layer === 'default' ? [base[0]] : base, target.route);
  const place = placeOfTarget(target);
  const warnings = windows === undefined ? [] : warningsOf(place, before, windows, own.layer !== 'account');
  return { target, before, after, adjustment, warnings };
}

function firstLimit(layers: readonly (LimitLayer | undefined)[], route: string | undefined): Limit | undefined {
  for (const layer of layers) {
    const limit = route === undefined ? layer?.allMethods?.windows : layer?.routeLimit(route);
    if (limit !== undefined) return limit;
  }
  return undefined;
}

function warningsOf(place: string, before: Limit | undefined, after: Limit, isOfMany: boolean): string[] {
  const warnings: string[] = [];
  if (isOfMany && after.length === 0) warnings.push(`${place} would be removed for every account that it applies to.`);
  if (isOfMany && after.some(({ max }) => max === 0))
    warnings.push(`${place} would reject every request of every account that it applies to.`);
  const [was, is] = [rateOf(before), rateOf(after)];
  if (was > 0 && is > 0 && (is > was * MAX_FACTOR || was > is * MAX_FACTOR)) {
    const factor = Math.round(Math.max(is / was, was / is));
    const change = is > was ? 'more' : 'less';
    warnings.push(`${place} would allow ${factor} times ${change}: ${textOf(before)} would become ${textOf(after)}.`);
  }
  return warnings;
}

/** Requests per millisecond in the long run; 0 without a window. */
function rateOf(limit: Limit | undefined): number {
  return limit === undefined || limit.length === 0
    ? 0
    : Math.min(...limit.map(({ max, durationMs }) => max / durationMs));
}

function textOf(limit: Limit | undefined): string {
  return (limit ?? []).map(formatWindow).join(', ');
}
