/**
 * Shadow limits: a candidate decides about the same requests as the limits in force, on its own counters, and
 * changes no answer.
 * @module headgate/shadow
 */

import { OptionError } from '../base/errors.ts';
import { createLogger, type Logger } from '../base/logger.ts';
import { checkFunctions, checkInteger, checkMethods, checkOptions } from '../base/options.ts';
import type { LimitStore } from '../core/ports.ts';
import { partsOf } from '../limits/limiter-parts.ts';
import type { Limiter } from '../limits/ports.ts';
import { isWindowSetSource, type Limits, type WindowSetSource } from '../limits/window-set-source.ts';
import { WindowSets } from '../limits/window-sets.ts';
import { ShadowChecks, type ShadowDecision } from './checks.ts';
import type { ShadowFigures } from './figures.ts';
import { createShadowedLimiter } from './shadowed-limiter.ts';

export type { ShadowDecision } from './checks.ts';
export type { NewlyRejectedAccount, ShadowCounts, ShadowFigures, ShadowOutcome } from './figures.ts';

/** Options of {@link withShadow}. */
export interface ShadowOptions {
  /** The candidate: limits as `createLimiter` takes them. */
  readonly limits: Limits | WindowSetSource;
  /**
   * Where the candidate counts: another store than the limiter's, or one with another prefix. {@link Limiter.close}
   * closes it. Let a store in Redis refuse if Redis is away (`onStoreFailure: 'refuse'`).
   */
  readonly store: LimitStore;
  /**
   * Part of the accounts whose requests are checked: more than 0, at most 1. Every process with the same number has the
   * same accounts.
   * @default 1
   */
  readonly sample?: number | undefined;
  /**
   * Most checks that wait or are under way. Further requests are not checked, which the figures say: 1 to 1,000,000.
   * @default 1_000
   */
  readonly maxUnderWay?: number | undefined;
  /**
   * After so many milliseconds a check failed: 1 to 60,000. A late answer is ignored.
   * @default 1_000
   */
  readonly timeoutMs?: number | undefined;
  /** Is called with each outcome. Its errors are logged. */
  readonly onDecision?: ((decision: ShadowDecision) => void) | undefined;
  /**
   * Is called if `onDecision` fails. False: nothing is logged.
   * @default console.error
   */
  readonly logger?: Logger | false | undefined;
}

/** A candidate that runs. */
export interface Shadow {
  /** The figures of now. */
  figures(): ShadowFigures;
  /** Resolves once no check waits or is under way, for tests. */
  idle(): Promise<void>;
}

/** A limiter with a candidate beside it. */
export interface LimiterWithShadow extends Limiter {
  readonly shadow: Shadow;
}

const OPTIONS = ['limits', 'store', 'sample', 'maxUnderWay', 'timeoutMs', 'onDecision', 'logger'];

/**
 * Adds a candidate to a limiter. The limiter that it returns decides as the given one does (S27).
 * @example
 * ```ts
 * const current = createLimiter({ store: createMemoryStore(), limits: { allMethods: ['60/1m'] } });
 * const limiter = withShadow(current, { limits: { allMethods: ['30/1m'] }, store: createMemoryStore() });
 * limiter.shadow.figures();
 * ```
 * @throws LimitError, OptionError with the place of the fault
 */
export function withShadow(limiter: Limiter, options: ShadowOptions): LimiterWithShadow {
  if (typeof limiter?.consume !== 'function' || typeof limiter.settle !== 'function')
    throw new OptionError('limiter', limiter, 'must be what createLimiter() returned');
  checkOptions(options, OPTIONS, 'options');
  const { limits, store, sample = 1, maxUnderWay = 1_000, timeoutMs = 1_000, onDecision, logger } = options;
  checkMethods('store', store, ['consume', 'settle', 'reset'], ', as createMemoryStore() does');
  checkOtherCounters(store, partsOf(limiter)?.store);
  if (typeof sample !== 'number' || !(sample > 0 && sample <= 1))
    throw new OptionError('sample', sample, 'must be more than 0 and at most 1');
  checkInteger('maxUnderWay', maxUnderWay, 1, 1_000_000);
  checkInteger('timeoutMs', timeoutMs, 1, 60_000);
  checkFunctions(options, ['onDecision']);
  // The candidate sees the costs in every unit of the current limits.
  const { units } = partsOf(limiter)?.windowSets ?? {};
  const windowSets = isWindowSetSource(limits) ? limits : new WindowSets(limits, 'limits', units);
  if (windowSets instanceof WindowSets && windowSets.boundsInFlight)
    throw new OptionError('limits', limits, NOT_IN_FLIGHT);
  const log = createLogger(logger);
  const checks = new ShadowChecks({ windowSets, store, sample, maxUnderWay, timeoutMs, onDecision, log });
  const shadow: Shadow = { figures: () => checks.figures(), idle: () => checks.idle() };
  return Object.assign(
    createShadowedLimiter(limiter, () => checks),
    { shadow },
  );
}

const NOT_IN_FLIGHT =
  'must not have inFlight: a candidate decides when a request is under way, so it cannot bound the requests in flight';

/** @throws OptionError if the candidate would count in the counters of the limiter */
function checkOtherCounters(store: LimitStore, current: LimitStore | undefined): void {
  if (current === undefined) return;
  const prefix = prefixOf(store);
  if (identityOf(store) === identityOf(current))
    throw new OptionError(
      'store',
      store,
      'must not be the store of the limiter, since a candidate needs its own counters',
    );
  // Two clients may belong to one server.
  if (prefix !== undefined && prefix === prefixOf(current))
    throw new OptionError('store', prefix, `must have another prefix than the limiter's, such as "${prefix}-shadow"`);
}

function identityOf(store: LimitStore): object {
  return store.identity ?? store;
}

/** Start of the keys of a store in Redis. */
function prefixOf({ identity }: LimitStore): string | undefined {
  return (identity as { readonly prefix?: string } | undefined)?.prefix;
}
