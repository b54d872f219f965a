import type { AdjustTarget } from '../core/adjustment.ts';
import { areEqualLimits } from '../core/limit.ts';
import { type Layer, limitOf } from './layers.ts';
import type { Subject } from './window-set-source.ts';

/**
 * The layer that the function `limits` returned last, and the names that it was called with, by the account's layer, which
 * has only adjustments.
 */
export type LimitsBeneath = WeakMap<Layer, { readonly names: string; readonly layer: Layer }>;

/**
 * Call it with each layer that the function returned for a subject with adjustments.
 * @param own the account's layer
 * @returns the limits that are not the same as before, although an adjustment hides them
 */
export function hiddenChanges(
  beneath: LimitsBeneath,
  own: Layer,
  layer: Layer,
  { account, route, provider, plan, lane }: Subject,
): readonly AdjustTarget[] {
  const before = beneath.get(own);
  if (before?.layer === layer) return [];
  const names = JSON.stringify([route, provider, plan, lane]);
  // For other names the function may return other limits, which is no change.
  if (before !== undefined && before.names !== names) return [];
  beneath.set(own, { names, layer });
  if (before === undefined) return [];
  return [{ account }, ...(route === undefined ? [] : [{ account, route }])].filter(
    (target) =>
      limitOf(own, target) !== undefined && !areEqualLimits(limitOf(before.layer, target), limitOf(layer, target)),
  );
}
