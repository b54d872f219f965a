import { isHeadgateError, StoreUnavailableError } from '../../base/errors.ts';
import { getOrCreate } from '../../base/get-or-create.ts';
import { monotonicClock } from '../../core/clock.ts';
import { Decision, FITS, type WindowStatus } from '../../core/decision.ts';
import { IN_FLIGHT_LIMITS, type InFlight, type Slot, type SlotReply } from '../../core/slot.ts';
import { createWindowSet, shareOfMax, type WindowSet, withMaxes } from '../../core/window-set.ts';
import { createMemoryStore } from '../memory/limits.ts';
import { DEFAULT_MAX_KEYS } from '../memory/options.ts';
import { SlotTable } from '../memory/slots.ts';

/**
 * The decider while the server cannot decide. `local`: this process's memory, with the same window set, so that each
 * process admits at most one allowance. `{ local: { share: 0.1 } }`: the same with a tenth of each max, rounded down, but
 * at least 1, so that ten processes together admit one allowance. `admit`: every request is accepted. `refuse`: the call
 * throws, which is a 503 over HTTP. Decisions of all but `refuse` are marked `degraded` (S17).
 */
export type OnStoreFailure = 'local' | 'admit' | 'refuse' | { readonly local: { readonly share: number } };

/** Decides instead of the store. */
export interface Failover {
  /** @throws StoreUnavailableError, or the local store's errors */
  decide(account: string, route: string, windowSet: WindowSet, cost: number, error: unknown): Decision;
  /**
   * Charges instead of the store, in the counters with which `decide` decides. Without such counters, no window.
   * @throws as `decide`
   */
  charge(account: string, route: string, windowSet: WindowSet, cost: number, error: unknown): readonly WindowStatus[];
  /** Settles a degraded decision. */
  settle(decision: Decision, cost: number): boolean;
  /** Decides about a slot instead of the store. @throws as `decide` */
  holdSlot(slot: Slot, leaseMs: number, error: unknown): SlotReply;
  /** Notes a slot that the store granted: `local` counts it, too. */
  noteSlot(slot: Slot, leaseMs: number): void;
  releaseSlot(slot: Slot): void;
  /** Undoes a degraded decision. */
  undo(decision: Decision): boolean;
}

const NO_SLOTS = { noteSlot: () => {}, releaseSlot: () => {} };

const NO_PLAN = /* @__PURE__ */ createWindowSet([], []);

/** @param localMaxKeys `maxKeys` of the memory store that `local` uses */
export function createFailover(policy: OnStoreFailure, localMaxKeys?: number): Failover {
  if (typeof policy === 'object') {
    const { share } = policy.local;
    return createLocal(localMaxKeys, sharesOf(share), (max) => shareOf(max, share));
  }
  switch (policy) {
    case 'local':
      return createLocal(
        localMaxKeys,
        (windowSet) => windowSet,
        (max) => max,
      );
    case 'admit':
      return {
        decide: (account, route, _windowSet, cost) => new Decision(account, route, NO_PLAN, cost, 0, FITS, [], true),
        charge: () => [],
        settle: () => false,
        undo: () => false,
        holdSlot: () => ({ held: true, running: {}, degraded: true }),
        ...NO_SLOTS,
      };
    case 'refuse':
      return {
        decide: refuse,
        charge: refuse,
        settle: () => false,
        undo: () => false,
        holdSlot: (_slot, _leaseMs, error) => throwFailure(error),
        ...NO_SLOTS,
      };
  }
}

function refuse(_account: string, _route: string, _windowSet: WindowSet, _cost: number, error: unknown): never {
  throwFailure(error);
}

function throwFailure(error: unknown): never {
  throw error instanceof Error ? error : new StoreUnavailableError(error);
}

/**
 * @param counted the windows that count in place of the windows of a request
 * @param most the most requests in flight, in place of a limit's
 */
function createLocal(
  maxKeys: number | undefined,
  counted: (windowSet: WindowSet) => WindowSet,
  most: (max: number) => number,
): Failover {
  const slots = new SlotTable(maxKeys ?? DEFAULT_MAX_KEYS);
  const store = createMemoryStore(maxKeys === undefined ? {} : { maxKeys });
  return {
    decide: (account, route, windowSet, cost) => store.consume(account, route, counted(windowSet), cost).asDegraded(),
    charge: (account, route, windowSet, cost) => store.charge(account, route, counted(windowSet), cost),
    settle: (decision, cost) => store.settle(decision, cost),
    undo: (decision) => store.undo(decision),
    holdSlot(slot, leaseMs) {
      const local: { -readonly [Limit in keyof InFlight]: number } = {};
      for (const limit of IN_FLIGHT_LIMITS) {
        const max = slot.most[limit];
        if (max !== undefined) local[limit] = most(max);
      }
      return { ...slots.hold({ ...slot, most: local }, leaseMs, monotonicClock.now()), degraded: true };
    },
    noteSlot(slot, leaseMs) {
      try {
        slots.hold(slot, leaseMs, monotonicClock.now(), true);
      } catch (error) {
        // The server counts it, so only an outage can let one request too many in.
        if (!isHeadgateError(error, 'store_full')) throw error;
      }
    },
    releaseSlot: (slot) => slots.release(slot),
  };
}

/** Makes window sets with a share of each max. Stores cache by identity, so each is made once. */
function sharesOf(share: number): (windowSet: WindowSet) => WindowSet {
  const shares = new WeakMap<WindowSet, WindowSet>();
  return (windowSet) => getOrCreate(shares, windowSet, () => withMaxes(windowSet, (max) => shareOf(max, share)));
}

/** A part of a max: at least 1, unless the max is 0. */
function shareOf(max: number, share: number): number {
  return Math.min(max, Math.max(1, shareOfMax(max, share)));
}
