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
  return {
    synchronous: false,
    get calls() {
      return calls;
    },
    get checks() {
      return checks;
    },
    async consume(account, route, windowSet, cost) {
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
      const decision = store.consume(account, route, windowSet, cost);
      await travel();
      return decision;
    },
    peek: (account, route, windowSet) => store.peek(account, route, windowSet),
    async settle(decision, cost) {
      await travel();
      return store.settle(decision, cost);
    },
    reset: (target) => store.reset(target),
  };
}
