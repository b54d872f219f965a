import type { Block } from '../../core/block.ts';
import { BlockedDecision } from '../../core/blocked-decision.ts';
import { monotonicClock } from '../../core/clock.ts';
import {
  charge,
  countFitting,
  Decision,
  evaluate,
  FITS,
  type WindowStatus,
  windowStatus,
} from '../../core/decision.ts';
import type { StoreCall } from '../../core/store-channel.ts';
import { addBeyond, type Counters, SLOTS_PER_WINDOW } from '../../core/window.ts';
import type { WindowSet } from '../../core/window-set.ts';
import type { Check } from './check-batcher.ts';
import type { Denials } from './denials.ts';
import type { Failover } from './failover.ts';
import type { KnownBlocks } from './known-blocks.ts';

/** The block that rejects a check. */
export interface FoundBlock {
  readonly block: Block;
  /** Whether the whole account is blocked, and not only the route. */
  readonly isOfAccount: boolean;
}

/** The parts of {@link CheckDecider}. */
export interface CheckDeciderParts {
  readonly failover: Failover;
  readonly knownBlocks: KnownBlocks;
  readonly denials: Denials;
}

/** When a call was made. */
export interface CallTimes {
  /** Milliseconds on the server's clock. */
  readonly now: number;
  /** On this process's clock. */
  readonly sentAt: number;
  readonly receivedAt: number;
}

/** The counters of one account and route, and the server's time. */
export interface Reading {
  readonly now: number;
  readonly counters: Counters;
}

/** A charge that need not fit. */
export interface Penalty extends Asked {
  readonly account: string;
  readonly route: string;
  readonly call: StoreCall | undefined;
}

/** The window set and cost that the requests of a check have in common. */
type Asked = { readonly windowSet: WindowSet; readonly cost: number };

const NO_COUNTERS = /* @__PURE__ */ new Float64Array();

/** Turns the server's reply about a check, or its failure, into the decisions of the requests that wait for it. */
export class CheckDecider {
  readonly #parts: CheckDeciderParts;
  /** Decisions that the failure policy made. */
  degraded = 0;

  constructor(parts: CheckDeciderParts) {
    this.#parts = parts;
  }

  /** @param found the block that rejects the requests, or the counters before the first of them */
  decide(check: Check<Decision>, asked: Asked, found: Counters | FoundBlock, times: CallTimes): void {
    if ('block' in found) this.#reject(check, asked, found, times);
    else this.#settle(check, asked, found, times);
  }

  /**
   * The failure policy decides, except about requests that a known block rejects. Of a lease it decides about one
   * request: this process cannot know what fits.
   */
  failOver({ account, route, waiting }: Check<Decision>, { windowSet, cost }: Asked, error: unknown): void {
    const { failover, knownBlocks } = this.#parts;
    const block = knownBlocks.find(account, route);
    for (const { call, lease, resolve, reject } of waiting) {
      if (call !== undefined) call.error = error;
      try {
        const decision =
          block === undefined
            ? failover.decide(account, route, windowSet, cost, error)
            : new BlockedDecision(account, route, windowSet, cost, monotonicClock.now(), block, true);
        if (lease !== undefined && decision.accepted) lease.granted = 1;
        resolve(decision);
        this.degraded++;
      } catch (reason) {
        reject(reason);
      }
    }
  }

  /**
   * The windows after a charge that need not fit.
   * @param send charges on the server, and returns the counters before it. If it rejects, the failure policy charges
   */
  async charge(penalty: Penalty, send: () => Promise<Reading>): Promise<readonly WindowStatus[]> {
    const { account, route, windowSet, cost, call } = penalty;
    try {
      const { now, counters } = await send();
      return windowSet.windows.map((window, i) => {
        addBeyond(counters, i * SLOTS_PER_WINDOW, window.durationMs, cost, now);
        return windowStatus(window, counters, i * SLOTS_PER_WINDOW, now, 0);
      });
    } catch (error) {
      if (call !== undefined) call.error = error;
      const windows = this.#parts.failover.charge(account, route, windowSet, cost, error);
      this.degraded++;
      return windows;
    }
  }

  /** Decides the requests of a check one after the other, starting from the counters that the server found. */
  #settle(
    check: Check<Decision>,
    { windowSet, cost }: Asked,
    counters: Counters,
    { now, sentAt, receivedAt }: CallTimes,
  ): void {
    const { keys, account, route, waiting } = check;
    this.#parts.knownBlocks.deleteAll(account, route);
    let left = waiting.length;
    for (const { lease, resolve } of waiting) {
      const rejectedBy = evaluate(windowSet, counters, 0, cost, now);
      if (rejectedBy === FITS) charge(windowSet, counters, 0, cost, now);
      const own = --left === 0 && lease === undefined ? counters : counters.slice();
      if (lease !== undefined && rejectedBy === FITS) {
        const further = countFitting(windowSet, counters, 0, cost, lease.requests - 1, now);
        if (further > 0) charge(windowSet, counters, 0, further * cost, now);
        lease.granted = 1 + further;
      }
      const decision = new Decision(account, route, windowSet, cost, now, rejectedBy, own);
      if (rejectedBy !== FITS)
        this.#parts.denials.remember(keys[0] as string, decision, rejectedBy, own, sentAt, receivedAt);
      resolve(decision);
    }
  }

  /** Rejects the requests of a check, because its account or its route is blocked (S21). */
  #reject(
    check: Check<Decision>,
    { windowSet, cost }: Asked,
    found: FoundBlock,
    { now, sentAt, receivedAt }: CallTimes,
  ): void {
    const { keys, account, route, waiting } = check;
    const { denials, knownBlocks } = this.#parts;
    const { block, isOfAccount } = found;
    const decision = new BlockedDecision(account, route, windowSet, cost, now, block);
    denials.remember(keys[0] as string, decision, FITS, NO_COUNTERS, sentAt, receivedAt);
    knownBlocks.add(isOfAccount ? { account } : { account, route }, block);
    for (const { resolve } of waiting) resolve(decision);
  }
}
