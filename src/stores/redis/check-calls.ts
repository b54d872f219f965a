/*
 * Why the rule is applied twice.
 *
 * `lua/consume.lua` decides in Redis and charges there, because reading, deciding and writing must be one atomic step.
 * Then TypeScript applies the same rule again, to the counters in the script's reply. The reason is coalescing:
 *
 * 1. Equal requests of one turn of the event loop (same account, route, window set and cost) are sent as one number. So
 *    a burst on one account costs one script call with few arguments. The script charges as many requests as fit.
 * 2. The reply is small as well: the server's time, and the counters as they were before these requests.
 * 3. From there `CheckDecider` runs `evaluate` and `charge` of core/decision.ts for one request after the other. So each
 *    request gets its own decision, with the exact trace and headers that it would have got if it had been sent alone.
 *
 * Both sides come to the same result, because they use the same counters, time and window set, and all numbers are
 * safe integers. The suites in headgate/testing check this.
 */

import { StoreUnavailableError } from '../../base/errors.ts';
import { type Clock, monotonicClock } from '../../core/clock.ts';
import type { Decision } from '../../core/decision.ts';
import type { Counters } from '../../core/window.ts';
import type { WindowSet } from '../../core/window-set.ts';
import { type Check, type CheckBatch, CheckBatcher } from '../shared/check-batcher.ts';
import { CheckDecider, type CheckDeciderParts, type FoundBlock } from '../shared/check-decider.ts';
import type { CircuitBreaker } from '../shared/circuit-breaker.ts';
import type { OutageLog } from '../shared/outage-log.ts';
import { traceCall } from '../shared/store-tracer.ts';
import type { Commands } from './client.ts';
import { foreignRecord, isSlotMoving } from './errors.ts';
import type { KeyNames } from './keys.ts';
import { layoutOf } from './layout.ts';
import consumeSource from './lua/consume.lua';
import { type ConsumeReply, readConsumeReply } from './reply.ts';
import { createScript, scriptTime } from './script.ts';

const consumeScript = /* @__PURE__ */ createScript(consumeSource);

/** The parts of a store. */
export interface LimitStoreParts extends CheckDeciderParts {
  readonly commands: Commands;
  readonly names: KeyNames;
  readonly breaker: CircuitBreaker;
  readonly outages: OutageLog;
  readonly identity: object;
  readonly clock: Clock | undefined;
}

/**
 * Sends checks to Redis, the checks of one turn of the event loop together, and decides the requests that wait for
 * them.
 */
export class CheckCalls {
  readonly #parts: LimitStoreParts;
  readonly #batcher: CheckBatcher;
  /** Script calls that were sent. */
  count = 0;
  /** Decisions that shared another decision's script call. */
  coalesced = 0;
  readonly decider: CheckDecider;

  constructor(parts: LimitStoreParts) {
    this.#parts = parts;
    this.decider = new CheckDecider(parts);
    this.#batcher = new CheckBatcher({
      // A script in a cluster can only touch keys of one slot, and only keys of one account are sure to share a slot.
      oneAccountPerBatch: parts.commands.isCluster,
      send: (batches) => {
        for (const batch of batches) void this.#decide(batch);
      },
    });
  }

  /** Decides one request. */
  decide(
    account: string,
    route: string,
    windowSet: WindowSet,
    cost: number,
    keys: readonly string[],
  ): Promise<Decision> {
    return traceCall('limits', 'consume', this.#parts.breaker, (call) => {
      if (!this.#parts.commands.isOverHttp) return this.#batcher.add({ keys, account, route, windowSet, cost, call });
      // On Workers, a request must not wait for the call of another request, whose end would end that call.
      return new Promise((resolve, reject) => {
        const check = { keys, account, route, waiting: [{ call, resolve, reject }] };
        void this.#decide({ windowSet, cost, checks: [check], position: 0 });
      });
    });
  }

  /**
   * Reads the counters of one account and route, and the server's time.
   * @throws StoreUnavailableError
   */
  async read(
    account: string,
    route: string,
    windowSet: WindowSet,
    keys: readonly string[],
  ): Promise<{ readonly now: number; readonly counters: Counters }> {
    // No request waits for this check, so the script charges nothing.
    const check = { keys, account, route, waiting: [] };
    const { now, checks } = await this.#run({ windowSet, cost: 1, checks: [check], position: 0 });
    const counters = checks[0] as Counters | number;
    if (typeof counters === 'number') throw this.#recordFault(check, counters);
    return { now, counters };
  }

  /** Sends a batch, and settles its requests. */
  async #decide(batch: CheckBatch): Promise<void> {
    const sentAt = monotonicClock.now();
    try {
      const { now, checks } = await this.#run(batch);
      const receivedAt = monotonicClock.now();
      for (const [i, check] of batch.checks.entries()) {
        const found = checks[i] as Counters | FoundBlock | number;
        if (typeof found === 'number') this.decider.failOver(check, batch, this.#recordFault(check, found));
        else this.decider.decide(check, batch, found, { now, sentAt, receivedAt });
      }
    } catch (error) {
      if (batch.checks.length > 1 && isSlotMoving((error as Error).cause)) {
        // Each key is on one of the two nodes, so that a check with one key can be executed by itself.
        for (const check of batch.checks) void this.#decide({ ...batch, checks: [check] });
      } else for (const check of batch.checks) this.decider.failOver(check, batch, error);
    }
  }

  /** Runs `consume.lua` for a batch. */
  async #run({ windowSet, cost, checks }: CheckBatch): Promise<ConsumeReply> {
    const { commands, breaker, clock } = this.#parts;
    const keys: string[] = [];
    let decisions = 0;
    for (const check of checks) {
      keys.push(...check.keys);
      decisions += check.waiting.length;
    }
    const { listEnd, heads } = layoutOf(windowSet);
    const args = [scriptTime(clock), `[${cost},${listEnd}`, ...heads];
    // Without the numbers, the script assumes one request per check. The check of a peek is without them.
    if (checks.some(({ waiting }) => waiting.length !== 1))
      for (const { waiting } of checks) args.push(String(waiting.length));
    this.count++;
    this.coalesced += Math.max(0, decisions - 1);
    // The circuit breaker also runs the reading, because an invalid reply is a failure like any other.
    return breaker.run(async () =>
      readConsumeReply(await consumeScript.run(commands, keys, args), checks.length, windowSet.windows.length),
    );
  }

  /** Reports a record that headgate did not write. This does not count for the circuit breaker. */
  #recordFault({ keys, account }: Pick<Check, 'keys' | 'account'>, index: number): StoreUnavailableError {
    const error = foreignRecord(keys[index] ?? this.#parts.names.blocks(account));
    this.#parts.outages.recordFailed(error);
    return new StoreUnavailableError(error);
  }
}
