import type { Cost } from '../core/unit.ts';
import { checkCosts } from '../limits/costs.ts';
import { decorateLimiter } from '../limits/decorate-limiter.ts';
import type { Limiter } from '../limits/ports.ts';
import type { ShadowChecks } from './checks.ts';

/**
 * A limiter whose calls a candidate hears of, after they returned.
 * @param checks returns the current candidate's checks; undefined without a candidate
 */
export function createShadowedLimiter(limiter: Limiter, checks: () => ShadowChecks | undefined): Limiter {
  const consumeSync: Limiter['consumeSync'] = (request) => {
    const decision = limiter.consumeSync(request);
    const current = checks();
    current?.add(current.prepare(request), decision);
    return decision;
  };
  const settle: Limiter['settle'] = (decision, cost) => {
    const settled = limiter.settle(decision, cost);
    // The window of the candidate may still be active although the limiter's window is over.
    // A receipt may be of another process, whose candidate this one does not have.
    if (typeof decision !== 'string' && typeof decision?.takeCharge === 'function' && isCost(cost))
      checks()?.settle(decision, cost);
    return settled;
  };
  return decorateLimiter(limiter, {
    consume: (consume) => (request) => {
      const current = checks();
      if (current === undefined) return consume(request);
      // Another promise in between would take the caller longer than all else that a shadow does.
      if (limiter.synchronous) {
        try {
          return Promise.resolve(consumeSync(request));
        } catch (error) {
          return Promise.reject(error);
        }
      }
      const decided = consume(request);
      const shadow = current.prepare(request);
      if (shadow === undefined) return decided;
      // The caller gets this promise, so that a rejection that it does not handle stays unhandled.
      return decided.then((decision) => {
        current.add(shadow, decision);
        return decision;
      });
    },
    consumeSync: () => consumeSync,
    refund: () => (decision) => settle(decision, 0),
    settle: () => settle,
    charge: (charge) => async (request) => {
      const current = checks();
      const shadow = current?.prepare(request);
      const windows = await charge(request);
      if (shadow !== undefined) current?.charge(shadow);
      return windows;
    },
    reset: (reset) => async (target) => {
      // The caller may change it meanwhile.
      const copy = Object.assign({}, target);
      await reset(target);
      checks()?.reset(copy);
    },
    block: (block) => async (target, options) => {
      // The caller may change them meanwhile.
      const { account, route } = Object(target);
      const isReset = Object(options).reset === true;
      await block(target, options);
      if (isReset) checks()?.reset(route === undefined ? { account } : { account, route });
    },
    close: (close) => async () => {
      checks()?.close();
      await close();
    },
  });
}

/** Whether the limiter took it for a cost. */
function isCost(cost: unknown): cost is Cost {
  try {
    checkCosts(cost, 0);
    return true;
  } catch {
    return false;
  }
}
