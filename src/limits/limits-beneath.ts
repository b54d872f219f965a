import type { AdjustTarget } from '../core/adjustment.ts';
import { areEqualLimits } from '../core/limit.ts';
import { type Layer, limitOf } from './layers.ts';
import type { Subject } from './window-set-source.ts';

const NONE: readonly AdjustTarget[] = [];

/**
 * The layer that the function `limits` returned last for each account with adjustments. Shows when an adjustment hides a
 * change of the function.
 */
export class LimitsBeneath {
  readonly #last: WeakMap<Layer, { readonly names: string; readonly layer: Layer }> = new WeakMap();

  /**
   * Call it with the layer that the function returned for a subject.
   * @param own the account's layer, which has only adjustments, because the function returns all else
   * @returns the limits that are not the same as before, and that an adjustment hides
   */
  hiddenChanges(own: Layer, layer: Layer, { account, route, provider, plan }: Subject): readonly AdjustTarget[] {
    const before = this.#last.get(own);
    if (before?.layer === layer) return NONE;
    const names = JSON.stringify([route, provider, plan]);
    // For other names the function may return other limits, which is no change.
    if (before !== undefined && before.names !== names) return NONE;
    this.#last.set(own, { names, layer });
    if (before === undefined) return NONE;
    const targets: readonly AdjustTarget[] = [{ account }, ...(route === undefined ? [] : [{ account, route }])];
    return targets.filter(
      (target) =>
        limitOf(own, target) !== undefined && !areEqualLimits(limitOf(before.layer, target), limitOf(layer, target)),
    );
  }
}
