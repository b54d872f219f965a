/*
 * Why the rule is applied twice.
 *
 * `lua/consume.lua` decides in Redis and charges there, because reading, deciding and writing must be one atomic step.
 * Then TypeScript applies the same rule again, to the counters in the script's reply. The reason is coalescing:
 *
 * 1. Equal requests of one turn of the event loop (same account, route, plan and cost) are sent as one number. So a
 *    burst on one account costs one script call with few arguments. The script charges as many requests as fit.
 * 2. The reply is small as well: the server's time, and the counters as they were before these requests.
 * 3. From there `#settle` runs `evaluate` and `charge` of core/decision.ts for one request after the other. So each
 *    request gets its own decision, with the exact trace and headers that it would have got if it had been sent alone.
 *
 * Both sides come to the same result, because they have the same counters, time and plan, and all numbers are safe
 * integers. The suites in headgate/testing check this.
 */
import type { Block, BlockTarget } from '../../core/block.ts';
import { BlockedDecision } from '../../core/blocked-decision.ts';
import { type Clock, monotonicClock } from '../../core/clock.ts';
import { charge, Decision, evaluate, FITS, type WindowStatus, windowStatus } from '../../core/decision.ts';
import { OptionError, StoreUnavailableError } from '../../core/errors.ts';
import { createPlan, type Plan } from '../../core/plan.ts';
import type { LimitStore, ReadyOptions, ResetTarget } from '../../core/ports.ts';
import { type Counters, SLOTS_PER_WINDOW } from '../../core/window.ts';
import { DEFAULT_MAX_KEYS } from '../memory/options.ts';
import { type Check, type CheckBatch, CheckBatcher } from '../shared/check-batcher.ts';
import { CircuitBreaker } from '../shared/circuit-breaker.ts';
import { createFailover, type Failover, type OnStoreFailure } from '../shared/failover.ts';
import { OutageLog } from '../shared/outage-log.ts';
import { waitUntilReady } from '../shared/ready.ts';
import { type Commands, commandsOf, type RedisClient } from './client.ts';
import { Denials } from './denials.ts';
import { foreignRecord, isHarmless, isSlotMoving } from './errors.ts';
import { createKeyNames, type KeyNames } from './keys.ts';
import { KnownBlocks } from './known-blocks.ts';
import { layoutOf, windowName } from './layout.ts';
import blockSource from './lua/block.lua';
import consumeSource from './lua/consume.lua';
import settleSource from './lua/settle.lua';
import { fillOptions, type RedisStoreOptions } from './options.ts';
import { type ConsumeReply, type FoundBlock, readBlockReply, readConsumeReply, readSettleReply } from './reply.ts';
import { createScript } from './script.ts';

export type { RedisStoreOptions } from './options.ts';

/** Figures of a Redis store since its start, for operators. */
export interface RedisStoreStats {
  /** Script calls that were sent. */
  readonly calls: number;
  /** Decisions that shared the script call of another one. */
  readonly coalesced: number;
  /** Rejections that were repeated without asking Redis (S20). */
  readonly localRejections: number;
  /** Calls that were given up at the deadline. */
  readonly timeouts: number;
  /** Answers that arrived after the deadline. Their calls are also counted in `timeouts`. */
  readonly late: number;
  /** Decisions that `onStoreFailure` made. */
  readonly degraded: number;
  /** The circuit breaker. `open`: calls fail at once, and one call every 500 ms tests whether Redis is back. */
  readonly breaker: 'closed' | 'open' | 'half-open';
}

/** A {@link LimitStore} in Redis or Redis Cluster, which any number of processes can share. */
export interface RedisStore extends LimitStore {
  block(target: BlockTarget, block: Block): Promise<void>;
  unblock(target: BlockTarget): Promise<void>;
  blocked(target: BlockTarget): Promise<Block | undefined>;
  /**
   * Resolves after the first answer of Redis, when the client is connected and the script is loaded. Await it when the
   * program starts: without a connection, `onStoreFailure` decides.
   * @throws StoreUnavailableError after `timeoutMs`, or the reason of the signal
   */
  ready(options?: ReadyOptions): Promise<void>;
  /** Returns the current figures. */
  stats(): RedisStoreStats;
}

/** What a log says of each failure policy. */
const EFFECTS: Readonly<Record<OnStoreFailure, string>> = {
  local: 'this process decides with counters of its own',
  admit: 'every request is accepted',
  refuse: 'every request is refused',
};
/** Plan and subject of a call that only tests the server. It charges nothing. */
const PROBE = /* @__PURE__ */ createPlan([{ max: 1, durationMs: 1_000 }], []);
const PROBED = 'headgate:ready';
const identities = /* @__PURE__ */ new WeakMap<RedisClient, Map<string, object>>();

const consumeScript = /* @__PURE__ */ createScript(consumeSource);
const settleScript = /* @__PURE__ */ createScript(settleSource);
const blockScript = /* @__PURE__ */ createScript(blockSource);

/** Most routes of one account that are blocked: each decision about an account with blocks reads all of them. */
const MAX_BLOCKED_ROUTES = 100;
const NO_COUNTERS = /* @__PURE__ */ new Float64Array();

/**
 * Creates a store in Redis. It has one string per (account, route). A decision is one atomic script and one round trip,
 * whatever the number of windows. The store never connects, configures or closes the client.
 * @throws OptionError
 */
export function createRedisStore(client: RedisClient, options: RedisStoreOptions = {}): RedisStore {
  const { prefix, deadlineMs, onStoreFailure, localMaxKeys, onError, log, denyCacheMaxMs, denyCacheMaxKeys, clock } =
    fillOptions(options);
  const commands = commandsOf('client', client);
  const { isReady } = commands;
  const effect = EFFECTS[onStoreFailure];
  const outages = new OutageLog({ what: 'rate limits', effect, isReady, log, onError, isHarmless });
  return new RedisLimitStore({
    commands,
    names: createKeyNames(prefix),
    breaker: new CircuitBreaker({
      deadlineMs,
      isReady,
      isHarmless,
      onError: outages.failed,
      onAnswer: outages.answered,
    }),
    failover: createFailover(onStoreFailure, localMaxKeys),
    knownBlocks: new KnownBlocks(localMaxKeys ?? DEFAULT_MAX_KEYS),
    denials: new Denials({ maxMs: clock === undefined ? denyCacheMaxMs : 0, maxKeys: denyCacheMaxKeys }),
    outages,
    identity: identityOf(client, prefix),
    clock,
  });
}

/** An object for each client and prefix, which stores with the same counters share. */
function identityOf(client: RedisClient, prefix: string): object {
  let byPrefix = identities.get(client);
  if (byPrefix === undefined) {
    byPrefix = new Map();
    identities.set(client, byPrefix);
  }
  const identity = byPrefix.get(prefix) ?? {};
  byPrefix.set(prefix, identity);
  return identity;
}

/** The parts of a store. */
interface Parts {
  readonly commands: Commands;
  readonly names: KeyNames;
  readonly breaker: CircuitBreaker;
  readonly failover: Failover;
  readonly knownBlocks: KnownBlocks;
  readonly denials: Denials;
  readonly outages: OutageLog;
  readonly identity: object;
  readonly clock: Clock | undefined;
}

class RedisLimitStore implements RedisStore {
  readonly synchronous = false;
  readonly #parts: Parts;
  readonly #batcher: CheckBatcher;
  #calls = 0;
  #coalesced = 0;
  #degraded = 0;

  get identity(): object {
    return this.#parts.identity;
  }

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#batcher = new CheckBatcher({
      // A script in a cluster can only touch keys of one slot, and only keys of one account are sure to share a slot.
      oneAccountPerBatch: parts.commands.isCluster,
      send: (batches) => {
        for (const batch of batches) void this.#decide(batch);
      },
    });
  }

  consume(account: string, route: string, plan: Plan, cost: number): Decision | Promise<Decision> {
    // The request is not limited.
    if (plan.windows.length === 0) return new Decision(account, route, plan, cost, monotonicClock.now(), FITS, []);
    const name = this.#parts.names.record(account, route);
    const denied = this.#parts.denials.get(name, account, route, plan, cost, monotonicClock.now());
    return denied ?? this.#batcher.add({ keys: this.#keysOf(name, account, plan), account, route, plan, cost });
  }

  async peek(account: string, route: string, plan: Plan): Promise<readonly WindowStatus[]> {
    if (plan.windows.length === 0) return [];
    const name = this.#parts.names.record(account, route);
    // No request waits for this check, so the script charges nothing.
    const check = { keys: this.#keysOf(name, account, plan), account, route, waiting: [] };
    const { now, checks } = await this.#run({ plan, cost: 1, checks: [check], position: 0 });
    const counters = checks[0] as Counters | number;
    if (typeof counters === 'number') throw this.#recordFault(check, counters);
    return plan.windows.map((window, i) => windowStatus(window, counters, i * SLOTS_PER_WINDOW, now, 0));
  }

  async settle(decision: Decision, cost: number): Promise<boolean> {
    const { commands, names, breaker, failover } = this.#parts;
    if (decision.degraded) return failover.settle(decision, cost);
    if (!decision.takeCharge()) return false;
    const { account, route, plan, trace } = decision;
    const windows = trace.flatMap((window) => [windowName(window), String(window.startedAt)]);
    const args = [this.#now(), String(cost - decision.cost), String(layoutOf(plan).ownWindows), ...windows];
    const name = names.record(account, route);
    const keys = this.#keysOf(name, account, plan);
    const settled = await this.#forgetRejections(plan.allMethodsScope === 'account' ? undefined : name, () =>
      breaker.run(async () => readSettleReply(await settleScript.run(commands, keys, args)) > 0),
    );
    if (!settled) decision.returnCharge();
    return settled;
  }

  async reset(target: ResetTarget): Promise<void> {
    const { commands, names, breaker } = this.#parts;
    const { account, route } = target;
    if (account !== undefined && route !== undefined) {
      const name = names.record(account, route);
      await this.#forgetRejections(name, () => breaker.run(() => commands.unlink(name)));
      return;
    }
    await this.#forgetRejections(undefined, () => this.#resetMany(target));
  }

  async block(target: BlockTarget, block: Block): Promise<void> {
    const args = [String(block.forMs), JSON.stringify(block.reason ?? null), String(MAX_BLOCKED_ROUTES)];
    const hasRoom = await this.#changeBlock(target, args);
    if (!hasRoom) {
      const reason = `cannot be blocked, because ${MAX_BLOCKED_ROUTES} routes of the account are: block the account`;
      throw new OptionError('target.route', target.route, reason);
    }
    this.#parts.knownBlocks.add(target, block);
  }

  async unblock(target: BlockTarget): Promise<void> {
    await this.#changeBlock(target, ['0']);
    this.#parts.knownBlocks.delete(target);
  }

  blocked(target: BlockTarget): Promise<Block | undefined> {
    return this.#parts.breaker.run(async () => readBlockReply(await this.#runBlockScript(target, [''])));
  }

  /** Sets or lifts a block. Returns whether there was room. */
  #changeBlock(target: BlockTarget, args: readonly string[]): Promise<boolean> {
    const { names, breaker } = this.#parts;
    const { account, route } = target;
    return this.#forgetRejections(route === undefined ? undefined : names.record(account, route), () =>
      breaker.run(async () => readSettleReply(await this.#runBlockScript(target, args)) > 0),
    );
  }

  #runBlockScript({ account, route }: BlockTarget, args: readonly string[]): Promise<unknown> {
    const { commands, names } = this.#parts;
    return blockScript.run(commands, [names.blocks(account)], [this.#now(), names.blocked(route), ...args]);
  }

  async #resetMany({ account, route }: ResetTarget): Promise<void> {
    const { commands, names, breaker } = this.#parts;
    const escaped = (name: string | undefined): string | undefined =>
      name === undefined ? undefined : names.escape(name);
    const target = { account: escaped(account), route: escaped(route) };
    const pages = commands.scan(names.pattern(account))[Symbol.asyncIterator]();
    for (;;) {
      const { done, value: page } = await breaker.run(() => pages.next());
      if (done) return;
      const records = page.filter((key) => {
        const record = names.parse(key);
        if (record === undefined) return false;
        return (target.account ?? record.account) === record.account && (target.route ?? record.route) === record.route;
      });
      // One command per key, because a cluster refuses a command with keys of several slots. They are sent together.
      await breaker.run(() => Promise.all(records.map((key) => commands.unlink(key))));
    }
  }

  /**
   * Runs `change`. Forgets cached rejections before it, and again after it, because replies sent before it are out of
   * date.
   * @param name of the changed record; all rejections are forgotten without it
   */
  async #forgetRejections<T>(name: string | undefined, change: () => Promise<T>): Promise<T> {
    const { denials } = this.#parts;
    const forget = (): void => {
      if (name === undefined) denials.clear(monotonicClock.now());
      else denials.forget(name, monotonicClock.now());
    };
    forget();
    try {
      return await change();
    } finally {
      forget();
    }
  }

  ready(options?: ReadyOptions): Promise<void> {
    const probe = () => this.peek(PROBED, PROBED, PROBE);
    const { isReady: isConnected, onClientError } = this.#parts.commands;
    return waitUntilReady({ isConnected, onClientError, probe }, options);
  }

  stats(): RedisStoreStats {
    const { denials, breaker } = this.#parts;
    return {
      calls: this.#calls,
      coalesced: this.#coalesced,
      localRejections: denials.hits,
      timeouts: breaker.timeouts,
      late: breaker.late,
      degraded: this.#degraded,
      breaker: breaker.state,
    };
  }

  /** Sends a batch, and settles its requests. */
  async #decide(batch: CheckBatch): Promise<void> {
    const sentAt = monotonicClock.now();
    try {
      const { now, checks } = await this.#run(batch);
      const receivedAt = monotonicClock.now();
      for (const [i, check] of batch.checks.entries()) {
        const found = checks[i] as Counters | FoundBlock | number;
        if (typeof found === 'number') this.#failOver(check, batch, this.#recordFault(check, found));
        else if ('block' in found) this.#reject(check, batch, found, now, sentAt, receivedAt);
        else this.#settle(check, batch, found, now, sentAt, receivedAt);
      }
    } catch (error) {
      if (batch.checks.length > 1 && isSlotMoving((error as Error).cause)) {
        // Each key is on one of the two nodes, so that a check with one key can be executed by itself.
        for (const check of batch.checks) void this.#decide({ ...batch, checks: [check] });
      } else for (const check of batch.checks) this.#failOver(check, batch, error);
    }
  }

  /** Decides the requests of a check one after the other, starting from the counters that the script found. */
  #settle(check: Check, batch: CheckBatch, counters: Counters, now: number, sentAt: number, receivedAt: number): void {
    const { keys, account, route, waiting } = check;
    const { plan, cost } = batch;
    this.#parts.knownBlocks.deleteAll(account, route);
    let left = waiting.length;
    for (const { resolve } of waiting) {
      const rejectedBy = evaluate(plan, counters, 0, cost, now);
      if (rejectedBy === FITS) charge(plan, counters, 0, cost, now);
      const own = --left === 0 ? counters : counters.slice();
      const decision = new Decision(account, route, plan, cost, now, rejectedBy, own);
      if (rejectedBy !== FITS)
        this.#parts.denials.remember(keys[0] as string, decision, rejectedBy, own, sentAt, receivedAt);
      resolve(decision);
    }
  }

  /** Rejects the requests of a check, because its account or its route is blocked (S21). */
  #reject(
    check: Check,
    { plan, cost }: CheckBatch,
    found: FoundBlock,
    now: number,
    sentAt: number,
    receivedAt: number,
  ): void {
    const { keys, account, route, waiting } = check;
    const { denials, knownBlocks } = this.#parts;
    const { block, isOfAccount } = found;
    const decision = new BlockedDecision(account, route, plan, cost, now, block);
    denials.remember(keys[0] as string, decision, FITS, NO_COUNTERS, sentAt, receivedAt);
    knownBlocks.add(isOfAccount ? { account } : { account, route }, block);
    for (const { resolve } of waiting) resolve(decision);
  }

  #failOver({ account, route, waiting }: Check, { plan, cost }: CheckBatch, error: unknown): void {
    const { failover, knownBlocks } = this.#parts;
    const block = knownBlocks.find(account, route);
    for (const { resolve, reject } of waiting) {
      try {
        if (block === undefined) resolve(failover.decide(account, route, plan, cost, error));
        else resolve(new BlockedDecision(account, route, plan, cost, monotonicClock.now(), block, true));
        this.#degraded++;
      } catch (reason) {
        reject(reason);
      }
    }
  }

  /** Runs `consume.lua` for a batch. */
  async #run({ plan, cost, checks }: CheckBatch): Promise<ConsumeReply> {
    const { commands, breaker } = this.#parts;
    const keys: string[] = [];
    let decisions = 0;
    for (const check of checks) {
      keys.push(...check.keys);
      decisions += check.waiting.length;
    }
    const { listEnd, heads } = layoutOf(plan);
    const args = [this.#now(), `[${cost},${listEnd}`, ...heads];
    // Without the numbers, the script assumes one request per check. The check of a peek has none.
    if (checks.some(({ waiting }) => waiting.length !== 1))
      for (const { waiting } of checks) args.push(String(waiting.length));
    this.#calls++;
    this.#coalesced += Math.max(0, decisions - 1);
    // The circuit breaker also runs the reading, because an invalid reply is a failure like any other.
    return breaker.run(async () =>
      readConsumeReply(await consumeScript.run(commands, keys, args), checks.length, plan.windows.length),
    );
  }

  /** Reports a record that headgate did not write. This does not count for the circuit breaker. */
  #recordFault({ keys, account }: Pick<Check, 'keys' | 'account'>, index: number): StoreUnavailableError {
    const error = foreignRecord(keys[index] ?? this.#parts.names.blocks(account));
    this.#parts.outages.recordFailed(error);
    return new StoreUnavailableError(error);
  }

  #keysOf(name: string, account: string, plan: Plan): string[] {
    return plan.allMethodsScope === 'account' ? [name, this.#parts.names.record(account)] : [name];
  }

  /** The time for a script; '' is the server's clock. */
  #now(): string {
    const { clock } = this.#parts;
    return clock === undefined ? '' : String(clock.now());
  }
}
