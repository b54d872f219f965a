import { createLogger } from '../base/logger.ts';
import { checkFunctions, checkInteger, checkMethods, checkOptions } from '../base/options.ts';
import { type Clock, wallClock } from '../core/clock.ts';
import type { LimitStore } from '../core/ports.ts';
import { createSystemTimers, type Timers } from '../core/timers.ts';
import { LeaseLedger } from './lease-ledger.ts';
import { LeaseStore } from './lease-store.ts';
import type { LeaseOptions, Leases } from './ports.ts';

const OPTIONS = ['leaseMs', 'maxPairs', 'onEvent', 'logger'];
const [SHORTEST_MS, LONGEST_MS] = [10, 60_000];
const MOST_PAIRS = 1_000_000;

/**
 * Creates leases: with them, a process decides from units that it charged ahead in the store (S32). They are apart from
 * `createLimiter`, so that only programs that use leases bundle them.
 * @example
 * ```ts
 * const limiter = createLimiter({ store, limits: ['6000/1m'], leases: createLeases() });
 * ```
 * @throws OptionError
 */
export function createLeases(options: LeaseOptions = {}): Leases {
  return createLeasesWith(options, createSystemTimers(), wallClock);
}

/** @param wall may be set back and forward, and goes on while the machine is suspended */
export function createLeasesWith(options: LeaseOptions, timers: Timers, wall: Clock): Leases {
  checkOptions(options, OPTIONS, 'options');
  const { leaseMs = 1_000, maxPairs = 10_000, onEvent } = options;
  checkInteger('leaseMs', leaseMs, SHORTEST_MS, LONGEST_MS);
  checkInteger('maxPairs', maxPairs, 1, MOST_PAIRS);
  checkFunctions(options, ['onEvent']);
  const ledger = new LeaseLedger(onEvent, createLogger(options.logger));
  return {
    stats: () => ledger.stats(),
    addTo(store) {
      checkLeasing(store);
      return new LeaseStore(store, { leaseMs, maxPairs, timers, wallClock: wall, ledger }).decorated();
    },
  };
}

/** @throws OptionError */
export function checkLeasing(store: LimitStore): void {
  checkMethods('store', store, ['lease', 'settleOnce'], ': this store cannot lease');
}
