import { StoreUnavailableError } from '../../base/errors.ts';
import { getOrCreate } from '../../base/get-or-create.ts';
import { Decision, FITS, type WindowStatus } from '../../core/decision.ts';
import { createWindowSet, shareOfMax, type WindowSet, withMaxes } from '../../core/window-set.ts';
import { createMemoryStore } from '../memory/limits.ts';

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
  /** Undoes a degraded decision. */
  undo(decision: Decision): boolean;
}

const NO_PLAN = /* @__PURE__ */ createWindowSet([], []);

/** @param localMaxKeys `maxKeys` of the memory store that `local` uses */
export function createFailover(policy: OnStoreFailure, localMaxKeys?: number): Failover {
  if (typeof policy === 'object') return createLocal(localMaxKeys, sharesOf(policy.local.share));
  switch (policy) {
    case 'local':
      return createLocal(localMaxKeys, (windowSet) => windowSet);
    case 'admit':
      return {
        decide: (account, route, _windowSet, cost) => new Decision(account, route, NO_PLAN, cost, 0, FITS, [], true),
        charge: () => [],
        settle: () => false,
        undo: () => false,
      };
    case 'refuse':
      return { decide: refuse, charge: refuse, settle: () => false, undo: () => false };
  }
}

function refuse(_account: string, _route: string, _windowSet: WindowSet, _cost: number, error: unknown): never {
  throw error instanceof Error ? error : new StoreUnavailableError(error);
}

/** @param counted the windows that count in place of the windows of a request */
function createLocal(maxKeys: number | undefined, counted: (windowSet: WindowSet) => WindowSet): Failover {
  const store = createMemoryStore(maxKeys === undefined ? {} : { maxKeys });
  return {
    decide: (account, route, windowSet, cost) => store.consume(account, route, counted(windowSet), cost).asDegraded(),
    charge: (account, route, windowSet, cost) => store.charge(account, route, counted(windowSet), cost),
    settle: (decision, cost) => store.settle(decision, cost),
    undo: (decision) => store.undo(decision),
  };
}

/** Makes window sets with a share of each max. Stores cache by identity, so each is made once. */
function sharesOf(share: number): (windowSet: WindowSet) => WindowSet {
  const shares = new WeakMap<WindowSet, WindowSet>();
  return (windowSet) =>
    getOrCreate(shares, windowSet, () =>
      withMaxes(windowSet, (max) => Math.min(max, Math.max(1, shareOfMax(max, share)))),
    );
}
