import { Tally } from '../base/tally.ts';
import type { BufferBudget } from '../body/buffer-budget.ts';
import { type Exchange, freeIfDone } from '../exchange/exchange.ts';
import { type Refusal, refuseForNow } from '../exchange/refusal.ts';

/** Options of {@link createShares}. */
export interface SharesOptions {
  /** Most requests of one application that run at a time. */
  readonly maxRequests: number;
  readonly buffers: BufferBudget;
}

/** Gives each request its place among the requests of its application. */
export interface Shares {
  /**
   * Returns a refusal if too many requests of the application are running. The place is free again when the exchange
   * is done.
   */
  enter(exchange: Exchange, application: string): Refusal | undefined;
}

const TOO_MANY = refuseForNow('Too many requests of this application are running; nothing was done. Retry later.');

/** Without a bound, the slow requests of one application could take all connections and memory. */
export function createShares({ maxRequests, buffers }: SharesOptions): Shares {
  const running = new Tally();
  return {
    enter(exchange, application) {
      if (running.of(application) >= maxRequests) return TOO_MANY;
      running.add(application, 1);
      exchange.buffer = buffers.open(application);
      exchange.leave = () => running.add(application, -1);
      // The client may already be gone.
      freeIfDone(exchange);
      return undefined;
    },
  };
}
