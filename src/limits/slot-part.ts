import { after, isPromise, type MaybePromise } from '../base/maybe-promise.ts';
import { BlockedDecision } from '../core/blocked-decision.ts';
import { monotonicClock } from '../core/clock.ts';
import { Decision, FITS } from '../core/decision.ts';
import type { LimitStore } from '../core/ports.ts';
import { type InFlight, type InFlightStatus, inFlightStatus } from '../core/slot.ts';
import { createWindowSet, type WindowSet } from '../core/window-set.ts';
import type { JointPart } from './joint-decision.ts';
import type { HeldSlot, Slots, TakenSlot } from './slots.ts';

const NO_WINDOWS = /* @__PURE__ */ createWindowSet([], []);
/** Neither the index of a window nor FITS, so that no window is shown or traced. */
const BY_SLOT = -2;

/** The decision about the requests in flight alone (S29). It has no windows, so there is nothing to settle. */
export class SlotDecision extends Decision {
  readonly #taken: TakenSlot;
  readonly #most: InFlight;

  constructor(account: string, route: string, cost: number, taken: TakenSlot, most: InFlight) {
    const { slot, reply } = taken;
    const now = monotonicClock.now();
    super(account, route, NO_WINDOWS, cost, now, slot === undefined ? BY_SLOT : FITS, [], reply.degraded);
    this.#taken = taken;
    this.#most = most;
  }

  /** Undefined if there was no room. */
  get slot(): HeldSlot | undefined {
    return this.#taken.slot;
  }

  override get inFlight(): InFlightStatus | undefined {
    return inFlightStatus(this.#taken.reply, this.#most);
  }

  override get impossible(): boolean {
    return false;
  }
}

/** The part of a request that the requests in flight decide; undefined if no limit bounds them. */
export function slotPart(
  slots: () => Slots,
  subject: string,
  account: string,
  route: string,
  { inFlight }: WindowSet,
  cost: number,
): JointPart | undefined {
  if (inFlight === undefined) return undefined;
  return {
    subject,
    known: () => undefined,
    decide: () =>
      after(slots().take(account, route, inFlight), (taken) => new SlotDecision(account, route, cost, taken, inFlight)),
    undo: (decision) => (decision as SlotDecision).slot?.release(),
  };
}

/** The part of a request whose requests in flight are bounded, but not by windows: only a block can reject it (S21). */
export function blockPart(
  store: LimitStore,
  subject: string,
  account: string,
  route: string,
  windowSet: WindowSet,
  cost: number,
): JointPart {
  const decide = (): MaybePromise<Decision> => {
    const blocked = store.blocked?.({ account, route });
    // While a server cannot say so, the requests in flight decide alone.
    return after(isPromise(blocked) ? blocked.catch(() => undefined) : blocked, (block) => {
      const now = monotonicClock.now();
      return block === undefined
        ? new Decision(account, route, windowSet, cost, now, FITS, [])
        : new BlockedDecision(account, route, windowSet, cost, now, block);
    });
  };
  return { subject, known: () => undefined, decide, undo: () => undefined };
}

/** Gives back the slots of a decision. Returns whether this call did it. Never rejects. */
export function releaseSlots(decision: Decision): MaybePromise<boolean> {
  const { slots = [] } = decision as { readonly slots?: readonly HeldSlot[] };
  const released = slots.map((slot) => slot.release());
  return released.some(isPromise) ? Promise.all(released).then(isAny) : isAny(released as boolean[]);
}

const isAny = (released: readonly boolean[]): boolean => released.includes(true);

/** Lets `using` release a decision. Not in the class: a computed name would keep bundlers from leaving code out. */
export function makeDisposable(): void {
  const { dispose, asyncDispose } = Symbol as Partial<SymbolConstructor>;
  const define = (symbol: symbol | undefined, value: (this: Decision) => unknown): void => {
    if (symbol !== undefined && !(symbol in Decision.prototype))
      Object.defineProperty(Decision.prototype, symbol, { value, configurable: true, writable: true });
  };
  define(dispose, function release() {
    void releaseSlots(this);
  });
  define(asyncDispose, async function release() {
    await releaseSlots(this);
  });
}
