import { StoreUnavailableError } from '../../base/errors.ts';
import { Decision, FITS } from '../../core/decision.ts';
import { createWindowSet, type WindowSet } from '../../core/window-set.ts';
import { createMemoryStore } from '../memory/limits.ts';

/**
 * The decider while the server cannot decide. `local`: this process's memory, with the same window set, so that each
 * process admits at most one allowance. `admit`: every request is accepted. `refuse`: the call throws, which is a 503
 * over HTTP. Decisions of the first two are marked `degraded` (S17).
 */
export type OnStoreFailure = 'local' | 'admit' | 'refuse';

/** Decides instead of the store. */
export interface Failover {
  /** @throws StoreUnavailableError, or the local store's errors */
  decide(account: string, route: string, windowSet: WindowSet, cost: number, error: unknown): Decision;
  /** Settles a degraded decision. */
  settle(decision: Decision, cost: number): boolean;
}

const NO_PLAN = /* @__PURE__ */ createWindowSet([], []);

/** @param localMaxKeys `maxKeys` of the memory store that `local` uses */
export function createFailover(policy: OnStoreFailure, localMaxKeys?: number): Failover {
  switch (policy) {
    case 'local': {
      const store = createMemoryStore(localMaxKeys === undefined ? {} : { maxKeys: localMaxKeys });
      return {
        decide: (account, route, windowSet, cost) => store.consume(account, route, windowSet, cost).asDegraded(),
        settle: (decision, cost) => store.settle(decision, cost),
      };
    }
    case 'admit':
      return {
        decide: (account, route, _windowSet, cost) => new Decision(account, route, NO_PLAN, cost, 0, FITS, [], true),
        settle: () => false,
      };
    case 'refuse':
      return {
        decide(_account, _route, _windowSet, _cost, error) {
          throw error instanceof Error ? error : new StoreUnavailableError(error);
        },
        settle: () => false,
      };
  }
}
