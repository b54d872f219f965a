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
import type { Decision, WindowStatus } from '../../core/decision.ts';
import type { LeaseGrant } from '../../core/ports.ts';
import type { Counters } from '../../core/window.ts';
import type { WindowSet } from '../../core/window-set.ts';
import { type Check, type CheckBatch, CheckBatcher, type CheckRequest, requestsOf } from '../shared/check-batcher.ts';
import { CheckDecider, type CheckDeciderParts, type FoundBlock, type Reading } from '../shared/check-decider.ts';
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
/** In place of a number of requests: the script only reads, or it charges also what does not fit. */
const READ = 0;
const FORCED = -1;

type DecisionBatch = CheckBatch<Decision>;

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
  readonly #decisions: CheckBatcher<Decision>;
  readonly #readings: CheckBatcher<Reading>;
  /** Script calls that were sent. */
  count = 0;
  /** Decisions that shared another decision's script call. */
  coalesced = 0;
  readonly decider: CheckDecider;

  constructor(parts: LimitStoreParts) {
    this.#parts = parts;
    this.decider = new CheckDecider(parts);
    // A script in a cluster can only touch keys of one slot, and only keys of one account are sure to share a slot.
    const oneAccountPerBatch = parts.commands.isCluster;
    this.#decisions = new CheckBatcher({ oneAccountPerBatch, send: this.#sendDecisions });
    this.#readings = new CheckBatcher({ oneAccountPerBatch, send: this.#sendReadings });
  }

  readonly #sendDecisions = (batches: readonly DecisionBatch[]): void => {
    for (const batch of batches) void this.#decide(batch);
  };

  readonly #sendReadings = (batches: readonly CheckBatch<Reading>[]): void => {
    for (const batch of batches) void this.#read(batch);
  };

  /** Decides one request. */
  decide(
    account: string,
    route: string,
    windowSet: WindowSet,
    cost: number,
    keys: readonly string[],
  ): Promise<Decision> {
    return traceCall('limits', 'consume', this.#parts.breaker, (call) =>
      this.#add(this.#decisions, this.#sendDecisions, { keys, account, route, windowSet, cost, call }),
    );
  }

  /** Decides so many equal requests, one after the other. */
  async lease(
    account: string,
    route: string,
    windowSet: WindowSet,
    cost: number,
    requests: number,
    keys: readonly string[],
  ): Promise<LeaseGrant> {
    const lease = { requests, granted: 0 };
    const decision = await traceCall('limits', 'lease', this.#parts.breaker, (call) =>
      this.#add(this.#decisions, this.#sendDecisions, { keys, account, route, windowSet, cost, call, lease }),
    );
    return { decision, granted: lease.granted };
  }

  /**
   * Reads the counters of one account and route, and the server's time.
   * @throws StoreUnavailableError
   */
  read(account: string, route: string, windowSet: WindowSet, keys: readonly string[]): Promise<Reading> {
    return traceCall('limits', 'peek', this.#parts.breaker, (call) =>
      this.#add(this.#readings, this.#sendReadings, { keys, account, route, windowSet, cost: 1, call }),
    );
  }

  #add<Result>(
    batcher: CheckBatcher<Result>,
    send: (batches: readonly CheckBatch<Result>[]) => void,
    request: CheckRequest,
  ): Promise<Result> {
    if (!this.#parts.commands.isOverHttp) return batcher.add(request);
    const { keys, account, route, windowSet, cost, call, lease } = request;
    // On Workers, a request must not wait for the call of another request, whose end would end that call.
    return new Promise((resolve, reject) => {
      const check = { keys, account, route, waiting: [{ call, lease, resolve, reject }] };
      send([{ windowSet, cost, checks: [check], position: 0 }]);
    });
  }

  /** Charges one account and route, whether the cost fits or not. The failure policy says what happens in an outage. */
  charge(
    account: string,
    route: string,
    windowSet: WindowSet,
    cost: number,
    keys: readonly string[],
  ): Promise<readonly WindowStatus[]> {
    return traceCall('limits', 'charge', this.#parts.breaker, (call) =>
      this.decider.charge({ account, route, windowSet, cost, call }, async () => {
        const check = { keys, account, route, waiting: [] };
        const { now, checks } = await this.#run({ windowSet, cost, checks: [check], position: 0 }, () => FORCED);
        const counters = checks[0] as Counters | number;
        if (typeof counters === 'number') throw this.#recordFault(check, counters);
        return { now, counters };
      }),
    );
  }

  /** Sends a batch that only reads. */
  async #read(batch: CheckBatch<Reading>): Promise<void> {
    try {
      const { now, checks } = await this.#run(batch, () => READ);
      for (const [i, check] of batch.checks.entries()) {
        const counters = checks[i] as Counters | number;
        if (typeof counters === 'number') rejectAll(check, this.#recordFault(check, counters));
        else for (const { resolve } of check.waiting) resolve({ now, counters });
      }
    } catch (error) {
      if (isMoving(batch, error)) for (const check of batch.checks) void this.#read({ ...batch, checks: [check] });
      else for (const check of batch.checks) rejectAll(check, error);
    }
  }

  /** Sends a batch, and settles its requests. */
  async #decide(batch: DecisionBatch): Promise<void> {
    const sentAt = monotonicClock.now();
    this.coalesced += batch.checks.reduce((sum, { waiting }) => sum + waiting.length, -1);
    try {
      const { now, checks } = await this.#run(batch, requestsOf);
      const receivedAt = monotonicClock.now();
      for (const [i, check] of batch.checks.entries()) {
        const found = checks[i] as Counters | FoundBlock | number;
        if (typeof found === 'number') this.decider.failOver(check, batch, this.#recordFault(check, found));
        else this.decider.decide(check, batch, found, { now, sentAt, receivedAt });
      }
    } catch (error) {
      if (isMoving(batch, error)) for (const check of batch.checks) void this.#decide({ ...batch, checks: [check] });
      else for (const check of batch.checks) this.decider.failOver(check, batch, error);
    }
  }

  /**
   * Runs `consume.lua` for a batch.
   * @param numberOf the number of requests of a check, or {@link READ} or {@link FORCED}
   */
  async #run<Result>(
    { windowSet, cost, checks }: CheckBatch<Result>,
    numberOf: (check: Check<Result>) => number,
  ): Promise<ConsumeReply> {
    const { commands, breaker, clock } = this.#parts;
    const keys: string[] = [];
    const requests: number[] = [];
    for (const check of checks) {
      keys.push(...check.keys);
      requests.push(numberOf(check));
    }
    const { listEnd, heads } = layoutOf(windowSet);
    const args = [scriptTime(clock), `[${cost},${listEnd}`, ...heads];
    // Without the numbers, the script assumes one request per check.
    if (requests.some((number) => number !== 1)) args.push(...requests.map(String));
    this.count++;
    // The circuit breaker also runs the reading, because an invalid reply is a failure like any other.
    return breaker.run(async () =>
      readConsumeReply(await consumeScript.run(commands, keys, args), checks.length, windowSet.windows.length),
    );
  }

  /** Reports a record that headgate did not write. This does not count for the circuit breaker. */
  #recordFault({ keys, account }: Pick<Check<Decision>, 'keys' | 'account'>, index: number): StoreUnavailableError {
    const error = foreignRecord(keys[index] ?? this.#parts.names.blocks(account));
    this.#parts.outages.recordFailed(error);
    return new StoreUnavailableError(error);
  }
}

/** Whether a batch must be split: each key is on one of two nodes, so that a check with one key can be executed. */
function isMoving({ checks }: CheckBatch<never>, error: unknown): boolean {
  return checks.length > 1 && isSlotMoving((error as Error).cause);
}

function rejectAll({ waiting }: Check<never>, error: unknown): void {
  for (const { reject } of waiting) reject(error);
}
