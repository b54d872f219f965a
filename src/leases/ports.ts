import type { Logger } from '../base/logger.ts';
import type { LeaseEvent } from '../core/lease-channel.ts';
import type { LimitStore } from '../core/ports.ts';

/** Options of `createLeases`. */
export interface LeaseOptions {
  /**
   * How long a lease lasts, in milliseconds, from 10 to 60,000. It ends earlier if a window ends. For so long, this
   * process may not see a reset, a block or a changed limit of another process.
   * @default 1_000
   */
  readonly leaseMs?: number | undefined;
  /**
   * Most pairs of account and route whose requests are watched, from 1 to 1,000,000. Requests of further pairs are
   * decided without leases. A pair without requests is forgotten after two leases.
   * @default 10_000
   */
  readonly maxPairs?: number | undefined;
  /** Is called with every event. Its errors are logged, and change no decision. */
  readonly onEvent?: ((event: LeaseEvent) => void) | undefined;
  /**
   * Is called if `onEvent` throws.
   * @default console.error
   */
  readonly logger?: Logger | false | undefined;
}

/** Figures of leases since the start, in units of cost unless they say otherwise: `leased` is the sum of the next four. */
export interface LeaseStats {
  /** Charged ahead of requests, or refunded into a lease. */
  readonly leased: number;
  /** Taken by requests. */
  readonly used: number;
  /** Given back, or not used when their windows were over. */
  readonly givenBack: number;
  /** At most so many stay charged until their windows are over, although no request took them. */
  readonly lost: number;
  /** Charged ahead, and not used yet. */
  readonly held: number;
  /** Decisions that needed no call of the store. */
  readonly decisions: number;
  /** Pairs of account and route that are watched. */
  readonly pairs: number;
}

/** Lets a process decide from units that it charged ahead (S32), for the option `leases` of `createLimiter`. */
export interface Leases {
  /** Returns the current figures. */
  stats(): LeaseStats;
  /**
   * The same store, which decides from leases. Use it if something decorates the store of a limiter, and must see every
   * decision: decorate what this returns, and leave out the option.
   * @throws OptionError if the store cannot lease
   */
  addTo(store: LimitStore): LimitStore;
}
