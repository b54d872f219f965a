import { decorateStore } from '../../src/core/decorate-store.ts';
import type { LimitStore, SynchronousLimitStore } from '../../src/core/ports.ts';
import type { FakeTimers } from './fake-timers.ts';

/** A store behind a network, in fake time. Equal checks of one turn share a call, as in Redis. */
export interface DistantStore extends LimitStore {
  /** Calls of all kinds of checks. */
  readonly calls: number;
  readonly checks: number;
}

/** @param latencyMs of the way there or back; called for each */
export function createDistantStore(
  store: SynchronousLimitStore,
  timers: FakeTimers,
  latencyMs: () => number,
): DistantStore {
  let call: Promise<void> | undefined;
  let calls = 0;
  let checks = 0;
  const travel = () => new Promise<void>((resolve) => void timers.after(latencyMs(), resolve, false));
  const decorated = decorateStore(store, {
    consume: (consume) => async (account, route, windowSet, cost) => {
      checks++;
      if (call === undefined) {
        calls++;
        call = travel();
        // All jobs of one turn have called by then.
        setImmediate(() => {
          call = undefined;
        });
      }
      await call;
      const decision = consume(account, route, windowSet, cost);
      await travel();
      return decision;
    },
    settle: (settle) => async (decision, cost) => {
      await travel();
      return settle(decision, cost);
    },
  });
  return {
    ...decorated,
    synchronous: false,
    get calls() {
      return calls;
    },
    get checks() {
      return checks;
    },
  };
}
