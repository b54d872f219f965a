import { Decision, FITS } from '../core/decision.ts';
import { type InFlight, type InFlightStatus, inFlightStatus } from '../core/slot.ts';
import { createWindowSet } from '../core/window-set.ts';
import type { HeldSlot, TakenSlot } from './slots.ts';

const NO_WINDOWS = /* @__PURE__ */ createWindowSet([], []);
/** Neither the index of a window nor FITS, so that no window is shown or traced. */
const BY_SLOT = -2;

/** The decision about the requests in flight alone (S29). It has no windows, so there is nothing to settle. */
export class SlotDecision extends Decision {
  readonly #taken: TakenSlot;
  readonly #most: InFlight;

  constructor(account: string, route: string, cost: number, decidedAt: number, taken: TakenSlot, most: InFlight) {
    const { slot, reply } = taken;
    super(account, route, NO_WINDOWS, cost, decidedAt, slot === undefined ? BY_SLOT : FITS, [], reply.degraded);
    this.#taken = taken;
    this.#most = most;
  }

  get slot(): HeldSlot | undefined {
    return this.#taken.slot;
  }

  override get inFlight(): InFlightStatus | undefined {
    return inFlightStatus(this.#taken.reply, this.#most);
  }

  override get impossible(): boolean {
    return false;
  }

  override asDegraded(): SlotDecision {
    const { account, route, cost, decidedAt } = this;
    const { reply, slot } = this.#taken;
    return new SlotDecision(account, route, cost, decidedAt, { slot, reply: { ...reply, degraded: true } }, this.#most);
  }
}
