import type { Adjustment, AdjustTarget } from '../../core/adjustment.ts';
import type { Limit } from '../../core/limit.ts';
import type { Plan } from '../../core/plan.ts';
import { type Limits, Plans, type Subject } from '../plans.ts';
import { type CheckedChange, checkChanges, type LimitChange } from './change.ts';
import { explainLimits, type LimitOrigin } from './explanation.ts';
import { type LimitPreview, previewChange } from './preview.ts';

/** The plans of a base with adjustments over it. */
export class AdjustedPlans {
  /** Returns the current adjustment, by `targetKey`. */
  readonly #current: (key: string) => Adjustment | undefined;
  #plans: Plans;
  /** The adjustments that the plans have, by `targetKey`. */
  readonly #applied = new Map<string, Adjustment>();
  /** Adjustments that do not fit the base, by `targetKey`. */
  readonly #unfit = new Set<string>();

  /** @throws LimitError, OptionError */
  constructor(base: Limits, current: (key: string) => Adjustment | undefined) {
    this.#plans = new Plans(base, 'base');
    this.#current = current;
  }

  get applied(): readonly Adjustment[] {
    return [...this.#applied.values()];
  }

  get size(): number {
    return this.#applied.size;
  }

  get unfit(): number {
    return this.#unfit.size;
  }

  get limitedRoutes(): readonly string[] {
    return this.#plans.limitedRoutes;
  }

  plan(subject: Subject): Plan {
    return this.#plans.plan(subject);
  }

  /** Has the plans obey the current adjustments of these limits. Plans of other limits stay the same objects. */
  apply(keys: Iterable<string>): void {
    const changes: [AdjustTarget, Limit | undefined][] = [];
    for (const key of keys) {
      const wanted = this.#fitting(key);
      const target = (wanted ?? this.#applied.get(key))?.target;
      if (wanted === undefined) this.#applied.delete(key);
      else this.#applied.set(key, wanted);
      if (target !== undefined) changes.push([target, wanted?.windows]);
    }
    this.#plans.adjustAll(changes);
  }

  /**
   * Replaces the base.
   * @param keys of every adjustment
   * @throws LimitError, OptionError; then nothing has changed
   */
  rebase(base: Limits, keys: Iterable<string>): void {
    this.#plans = new Plans(base, 'base');
    this.#applied.clear();
    this.#unfit.clear();
    this.apply(keys);
  }

  /** @throws LimitError, OptionError with the place of the fault */
  check(changes: readonly LimitChange[]): readonly CheckedChange[] {
    const checked = checkChanges(changes);
    for (const { target } of checked) this.#plans.checkAdjustable(target);
    return checked;
  }

  preview(changes: readonly CheckedChange[]): readonly LimitPreview[] {
    return changes.map((change) => previewChange(change, this.#plans, this.#applied));
  }

  /** @throws what a request of the subject would be refused with */
  explain(subject: Subject): readonly LimitOrigin[] {
    this.#plans.plan(subject);
    return explainLimits(subject, this.#plans, this.#applied);
  }

  #fitting(key: string): Adjustment | undefined {
    const current = this.#current(key);
    this.#unfit.delete(key);
    if (current === undefined || this.#plans.isAdjustable(current.target)) return current;
    this.#unfit.add(key);
    return undefined;
  }
}
