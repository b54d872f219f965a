import { Decision, FITS, type WindowStatus } from '../core/decision.ts';
import { type Counters, SLOTS_PER_WINDOW } from '../core/window.ts';
import type { WindowSet } from '../core/window-set.ts';

/** An acceptance from a lease. Its windows are computed when they are read. */
export class LeasedDecision extends Decision {
  readonly #charged: Counters;
  readonly #left: number;
  #whole: Decision | undefined;

  /**
   * @param charged the counters after the store charged the lease; they must never be modified
   * @param left how many units of them no request took yet
   */
  constructor(
    account: string,
    route: string,
    windowSet: WindowSet,
    cost: number,
    decidedAt: number,
    charged: Counters,
    left: number,
  ) {
    super(account, route, windowSet, cost, decidedAt, FITS, charged);
    this.#charged = charged;
    this.#left = left;
  }

  override get leased(): boolean {
    return true;
  }

  override get shown(): WindowStatus | undefined {
    return this.#decision.shown;
  }

  override get trace(): readonly WindowStatus[] {
    return this.#decision.trace;
  }

  get #decision(): Decision {
    if (this.#whole === undefined) {
      const counters = this.#charged.slice();
      for (let count = 1; count < counters.length; count += SLOTS_PER_WINDOW)
        counters[count] = Math.max(0, (counters[count] as number) - this.#left);
      const { account, route, windowSet, cost, decidedAt } = this;
      this.#whole = new Decision(account, route, windowSet, cost, decidedAt, FITS, counters);
    }
    return this.#whole;
  }
}
