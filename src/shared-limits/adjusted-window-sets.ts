import { getOrCreate } from '../base/get-or-create.ts';
import type { MaybePromise } from '../base/maybe-promise.ts';
import { inSlices } from '../base/slices.ts';
import { type Adjustment, type AdjustTarget, layerOf, targetKey } from '../core/adjustment.ts';
import { areEqualLimits, type Limit } from '../core/limit.ts';
import type { WindowSet } from '../core/window-set.ts';
import { limitOf } from '../limits/layers.ts';
import type { LayerField, Limits, NamedRoutes, Subject } from '../limits/window-set-source.ts';
import { WindowSets } from '../limits/window-sets.ts';
import { type CheckedChange, checkChanges, type LimitChange } from './change.ts';
import { explainLimits, type LimitOrigin } from './explanation.ts';
import { type LimitPreview, previewChange } from './preview.ts';

/** Adjustments by `targetKey`. */
type Adjustments = ReadonlyMap<string, Adjustment>;

/** The window sets of a base with adjustments over it. */
export class AdjustedWindowSets {
  readonly #isOver: (adjustment: Adjustment) => boolean;
  readonly #onHidden: ((adjustments: readonly Adjustment[]) => void) | undefined;
  #windowSets: WindowSets;
  readonly #units: readonly string[];
  /** The adjustments of the window sets, by `targetKey`. */
  #applied = new Map<string, Adjustment>();
  /** Adjustments that do not fit the base, by `targetKey`. */
  #unfit = new Set<string>();
  /** Counts changes. */
  #changes = 0;
  /** The adjustments at one of these counts. */
  #listed: { readonly at: number; readonly list: readonly Adjustment[] } = { at: 0, list: [] };

  /**
   * @param isOver whether an adjustment reached its end, and does not apply any more
   * @param onHidden is called with adjustments whose limits in the base changed
   * @param units beside requests, in addition to those in the base
   * @throws LimitError, OptionError
   */
  constructor(
    base: Limits | WindowSets,
    isOver: (adjustment: Adjustment) => boolean,
    onHidden?: (adjustments: readonly Adjustment[]) => void,
    units: readonly string[] = [],
  ) {
    this.#units = units;
    this.#isOver = isOver;
    this.#onHidden = onHidden;
    this.#windowSets = this.#watched(new WindowSets(base, 'base', units));
  }

  /** The same list until something changes. */
  get applied(): readonly Adjustment[] {
    if (this.#listed.at !== this.#changes) this.#listed = { at: this.#changes, list: [...this.#applied.values()] };
    return this.#listed.list;
  }

  get size(): number {
    return this.#applied.size;
  }

  get unfit(): number {
    return this.#unfit.size;
  }

  get limitedRoutes(): readonly string[] {
    return this.#windowSets.limitedRoutes;
  }

  get layerFields(): readonly LayerField[] {
    return this.#windowSets.layerFields;
  }

  get groups(): readonly string[] | undefined {
    return this.#windowSets.groups;
  }

  get lanes(): readonly string[] | undefined {
    return this.#windowSets.lanes;
  }

  get longestMs(): number {
    return this.#windowSets.longestMs;
  }

  get needsRoute(): boolean {
    return this.#windowSets.needsRoute;
  }

  get units(): readonly string[] {
    return this.#windowSets.units;
  }

  namedRoutes(subject: Subject): MaybePromise<NamedRoutes> {
    return this.#windowSets.namedRoutes(subject);
  }

  windowSet(subject: Subject): WindowSet {
    return this.#windowSets.windowSet(subject);
  }

  /** Has the window sets obey the adjustments of these limits. Window sets of other limits stay the same objects. */
  apply(keys: Iterable<string>, adjustments: Adjustments): void {
    this.#changes++;
    const changes: [AdjustTarget, Limit | undefined][] = [];
    for (const key of keys) {
      const before = this.#applied.get(key);
      const wanted = this.#fitting(key, adjustments.get(key));
      if (wanted === undefined) this.#applied.delete(key);
      else this.#applied.set(key, wanted);
      const target = (wanted ?? before)?.target;
      if (target !== undefined) changes.push([target, wanted?.windows]);
    }
    this.#windowSets.adjustAll(changes);
  }

  /**
   * Prepares to obey other adjustments in place of all, in slices.
   * @param base is under them from then on; by default the present base
   * @returns a function that applies them to the window sets, at once; if others came meanwhile, it needs those
   * @throws LimitError, OptionError of the base
   */
  async prepare(adjustments: Adjustments, base?: Limits): Promise<(current?: Adjustments) => void> {
    const before = this.#changes;
    const next = new AdjustedWindowSets(base ?? this.#windowSets, this.#isOver, undefined, this.#units);
    if (base === undefined) next.#applied = new Map(this.#applied);
    // Each change of a layer copies it, so all limits of a layer are changed together.
    const byLayer = new Map<string, string[]>();
    await inSlices([...next.#applied, ...adjustments], ([key, { target }]) => {
      const { layer, name } = layerOf(target);
      getOrCreate(byLayer, `${layer} ${name}`, () => []).push(key);
    });
    await inSlices(byLayer.values(), (keys) => next.apply(keys, adjustments));
    return (current = adjustments) => {
      // Another base, or a change of adjustments, came in between.
      const hasMissed = this.#changes !== before;
      const earlier = this.#windowSets;
      if (base !== undefined || !hasMissed) {
        this.#changes++;
        this.#windowSets = this.#watched(next.#windowSets);
        this.#applied = next.#applied;
        this.#unfit = next.#unfit;
      }
      if (hasMissed) this.apply(new Set([...this.#applied.keys(), ...this.#unfit, ...current.keys()]), current);
      if (base === undefined) return;
      const hidden = this.applied.filter(
        ({ target }) => !areEqualLimits(limitOfBase(earlier, target), limitOfBase(this.#windowSets, target)),
      );
      if (hidden.length > 0) this.#onHidden?.(hidden);
    };
  }

  /** @throws LimitError, OptionError with the place of the fault */
  check(changes: readonly LimitChange[]): readonly CheckedChange[] {
    const checked = checkChanges(changes);
    for (const { target, windows } of checked) {
      const fault = this.#windowSets.whyNotAdjustable(target, windows);
      if (fault !== undefined) throw fault;
    }
    return checked;
  }

  preview(changes: readonly CheckedChange[]): readonly LimitPreview[] {
    return changes.map((change) => previewChange(change, this.#windowSets, this.#applied));
  }

  /** @throws the error that would refuse a request of the subject */
  explain(subject: Subject): readonly LimitOrigin[] {
    this.#windowSets.windowSet(subject);
    return explainLimits(subject, this.#windowSets, this.#applied);
  }

  #watched(windowSets: WindowSets): WindowSets {
    windowSets.onHidden = (target) => {
      const adjustment = this.#applied.get(targetKey(target));
      if (adjustment !== undefined) this.#onHidden?.([adjustment]);
    };
    return windowSets;
  }

  #fitting(key: string, adjustment: Adjustment | undefined): Adjustment | undefined {
    this.#unfit.delete(key);
    if (adjustment === undefined || this.#isOver(adjustment)) return undefined;
    if (this.#windowSets.whyNotAdjustable(adjustment.target, adjustment.windows) === undefined) return adjustment;
    this.#unfit.add(key);
    return undefined;
  }
}

/** The limit of the base that an adjustment of this target replaces, if its layer has one. */
function limitOfBase(windowSets: WindowSets, target: AdjustTarget): Limit | undefined {
  return limitOf(windowSets.layer(layerOf(target))?.unadjusted, target);
}
