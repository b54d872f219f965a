import { OptionError } from '../../base/errors.ts';
import { getOrCreate } from '../../base/get-or-create.ts';
import type { Block, BlockTarget, FreshStart } from '../../core/block.ts';
import { monotonicClock } from '../../core/clock.ts';
import { type CooldownCommand, type CooldownReply, numbersOf, PROVIDER } from '../../core/cooldown.ts';
import { nameCounters } from '../../core/counters.ts';
import { Decision, FITS, type WindowStatus, windowStatus } from '../../core/decision.ts';
import type { LeaseGrant, LimitStore, ReadyOptions, ResetTarget } from '../../core/ports.ts';
import type { Slot, SlotReply } from '../../core/slot.ts';
import { SLOTS_PER_WINDOW } from '../../core/window.ts';
import { createWindowSet, type WindowSet } from '../../core/window-set.ts';
import { DEFAULT_MAX_KEYS } from '../memory/options.ts';
import { CircuitBreaker } from '../shared/circuit-breaker.ts';
import { Denials } from '../shared/denials.ts';
import { createFailover } from '../shared/failover.ts';
import { KnownBlocks, keepingCooldown } from '../shared/known-blocks.ts';
import { effectOf } from '../shared/limit-store-options.ts';
import { OutageLog } from '../shared/outage-log.ts';
import { waitUntilReady } from '../shared/ready.ts';
import type { LimitStoreStats, ServerLimitStore } from '../shared/server-limit-store.ts';
import { holdOnServer } from '../shared/server-slots.ts';
import { type Receipted, settleOnServer } from '../shared/settlement.ts';
import { traceCall } from '../shared/store-tracer.ts';
import { CheckCalls, type LimitStoreParts } from './check-calls.ts';
import { commandsOf, type RedisClient, scanAll } from './client.ts';
import { isHarmless } from './errors.ts';
import { createKeyNames } from './keys.ts';
import blockSource from './lua/block.lua';
import { fillOptions, type RedisStoreOptions } from './options.ts';
import { readBlockReply, readCooldownReply, readIntegerReply } from './reply.ts';
import { createScript, scriptTime } from './script.ts';
import { isNotExecuted, SettleCalls } from './settle-calls.ts';
import { SlotCalls } from './slot-calls.ts';
import { fromUpstash, isUpstash, type UpstashClient } from './upstash.ts';

export type { RedisStoreOptions } from './options.ts';

/** Figures of a Redis store since its start, for operators. */
export type RedisStoreStats = LimitStoreStats;

/** A {@link LimitStore} in Redis or Redis Cluster, which any number of processes can share. */
export interface RedisStore extends ServerLimitStore {
  /**
   * Resolves after the first answer of Redis, when the client is connected and the script is loaded. Await it when the
   * program starts: without a connection, `onStoreFailure` decides.
   * @throws StoreUnavailableError after `timeoutMs`, or the reason of the signal
   */
  ready(options?: ReadyOptions): Promise<void>;
}

/** Plan and subject of a call that only tests the server. It charges nothing. */
const PROBE = /* @__PURE__ */ createWindowSet([{ max: 1, durationMs: 1_000 }], []);
const PROBED = 'headgate:ready';
const identities = /* @__PURE__ */ new WeakMap<RedisClient | UpstashClient, Map<string, object>>();

const blockScript = /* @__PURE__ */ createScript(blockSource);

/** Most routes of one account that are blocked: each decision about an account with blocks reads all of them. */
const MAX_BLOCKED_ROUTES = 100;

/**
 * Creates a store in Redis. It stores one string per (account, route). A decision is one atomic script and one round
 * trip, whatever the number of windows. The store never connects, configures or closes the client: ioredis, node-redis,
 * or, over HTTP, `@upstash/redis`.
 * @throws OptionError
 */
export function createRedisStore(client: RedisClient | UpstashClient, options: RedisStoreOptions = {}): RedisStore {
  const { prefix, deadlineMs, onStoreFailure, localMaxKeys, onError, log, denyCacheMaxMs, denyCacheMaxKeys, clock } =
    fillOptions(options);
  const commands = isUpstash(client) ? fromUpstash(client) : commandsOf('client', client);
  const { isReady } = commands;
  const effect = effectOf(onStoreFailure);
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
function identityOf(client: RedisClient | UpstashClient, prefix: string): object {
  return getOrCreate(
    getOrCreate(identities, client, () => new Map()),
    prefix,
    () => ({ prefix, ...nameCounters(client, `redis ${prefix}`) }),
  );
}

class RedisLimitStore implements RedisStore {
  readonly synchronous = false;
  readonly #parts: LimitStoreParts;
  readonly #calls: CheckCalls;
  readonly #settlements: SettleCalls;
  readonly #slots: SlotCalls;

  get identity(): object {
    return this.#parts.identity;
  }

  constructor(parts: LimitStoreParts) {
    this.#parts = parts;
    this.#calls = new CheckCalls(parts);
    this.#settlements = new SettleCalls(parts);
    this.#slots = new SlotCalls(parts);
  }

  consume(account: string, route: string, windowSet: WindowSet, cost: number): Decision | Promise<Decision> {
    // The request is not limited.
    if (windowSet.windows.length === 0)
      return new Decision(account, route, windowSet, cost, monotonicClock.now(), FITS, []);
    const name = this.#parts.names.record(account, route);
    const denied = this.#denied(name, account, route, windowSet, cost);
    return denied ?? this.#calls.decide(account, route, windowSet, cost, this.#keysOf(name, account, windowSet));
  }

  lease(
    account: string,
    route: string,
    windowSet: WindowSet,
    cost: number,
    requests: number,
  ): LeaseGrant | Promise<LeaseGrant> {
    // The requests are not limited.
    if (windowSet.windows.length === 0)
      return { decision: this.consume(account, route, windowSet, cost) as Decision, granted: requests };
    const name = this.#parts.names.record(account, route);
    const denied = this.#denied(name, account, route, windowSet, cost);
    return denied === undefined
      ? this.#calls.lease(account, route, windowSet, cost, requests, this.#keysOf(name, account, windowSet))
      : { decision: denied, granted: 0 };
  }

  knownRejection(account: string, route: string, windowSet: WindowSet, cost: number): Decision | undefined {
    return this.#denied(this.#parts.names.record(account, route), account, route, windowSet, cost);
  }

  async peek(account: string, route: string, windowSet: WindowSet): Promise<readonly WindowStatus[]> {
    if (windowSet.windows.length === 0) return [];
    const name = this.#parts.names.record(account, route);
    const { now, counters } = await this.#calls.read(account, route, windowSet, this.#keysOf(name, account, windowSet));
    return windowSet.windows.map((window, i) => windowStatus(window, counters, i * SLOTS_PER_WINDOW, now, 0));
  }

  settle(decision: Decision, cost: number): Promise<boolean> {
    return this.#settle(decision, cost);
  }

  undo(decision: Decision): Promise<boolean> {
    return this.#settle(decision, undefined);
  }

  settleOnce(decision: Decision, cost: number, receipt: string, until?: number): Promise<boolean> {
    return this.#settle(decision, cost, { receipt, until });
  }

  #settle(decision: Decision, cost: number | undefined, receipted?: Receipted): Promise<boolean> {
    const { denials, failover, names } = this.#parts;
    const { account, route, windowSet } = decision;
    const name = names.record(account, route);
    const keys = this.#keysOf(name, account, windowSet);
    const changed = windowSet.allMethodsScope === 'account' ? { shared: account } : { pair: name };
    return settleOnServer({ denials, failover, isNotExecuted }, decision, cost, changed, (change) =>
      this.#settlements.settle(decision, change, cost === undefined, keys, names.receipts(account), receipted),
    );
  }

  async charge(account: string, route: string, windowSet: WindowSet, cost: number): Promise<readonly WindowStatus[]> {
    if (windowSet.windows.length === 0) return [];
    // Rejections that are cached stay certain: a charge makes no room.
    const name = this.#parts.names.record(account, route);
    return this.#calls.charge(account, route, windowSet, cost, this.#keysOf(name, account, windowSet));
  }

  holdSlot(slot: Slot, leaseMs: number): Promise<SlotReply> {
    return holdOnServer(this.#parts.failover, { slot, leaseMs }, this.#slots.run);
  }

  async releaseSlot(slot: Slot): Promise<void> {
    this.#parts.failover.releaseSlot(slot);
    await this.#slots.run({ slot, leaseMs: 0 });
  }

  async reset(target: ResetTarget): Promise<void> {
    const { commands, names } = this.#parts;
    const { account, route } = target;
    if (account !== undefined && route !== undefined) {
      const name = names.record(account, route);
      await this.#parts.denials.forgetDuring({ pair: name }, () => this.#run('reset', () => commands.unlink(name)));
      return;
    }
    await this.#parts.denials.forgetDuring({ account }, () => this.#resetMany(target));
  }

  async block(target: BlockTarget, block: Block, fresh?: FreshStart): Promise<void> {
    const args = [String(block.forMs), JSON.stringify(block.reason ?? null), String(MAX_BLOCKED_ROUTES)];
    if (fresh !== undefined) args.push(String(fresh.longestMs));
    const hasRoom = await this.#changeBlock('block', target, args);
    if (!hasRoom) throw noRoom(target);
    this.#parts.knownBlocks.add(target, block);
  }

  async unblock(target: BlockTarget): Promise<void> {
    await this.#changeBlock('unblock', target, ['0']);
    this.#parts.knownBlocks.delete(target);
  }

  blocked(target: BlockTarget): Promise<Block | undefined> {
    return this.#run('blocked', async () => readBlockReply(await this.#runBlockScript(target, [''])));
  }

  async cooldown(target: BlockTarget, command: CooldownCommand): Promise<CooldownReply> {
    const { knownBlocks } = this.#parts;
    const args = [
      command.kind,
      JSON.stringify(PROVIDER),
      String(MAX_BLOCKED_ROUTES),
      JSON.stringify(numbersOf(command)),
    ];
    const reply = await keepingCooldown(knownBlocks, target, command, () =>
      this.#changing(target, 'cooldown', async () =>
        readCooldownReply(await this.#runBlockScript(target, args, false)),
      ),
    );
    if (reply === undefined) throw noRoom(target);
    return reply;
  }

  /** Sets or lifts a block. Returns whether there was room. */
  #changeBlock(operation: 'block' | 'unblock', target: BlockTarget, args: readonly string[]): Promise<boolean> {
    return this.#changing(
      target,
      operation,
      async () => readIntegerReply(await this.#runBlockScript(target, args)) > 0,
    );
  }

  /** Makes a call that can make rejections of the target wrong. */
  #changing<T>({ account, route }: BlockTarget, operation: string, send: () => Promise<T>): Promise<T> {
    const { denials, names } = this.#parts;
    return denials.forgetDuring(route === undefined ? { account } : { pair: names.record(account, route) }, () =>
      this.#run(operation, send),
    );
  }

  #runBlockScript({ account, route }: BlockTarget, args: readonly string[], mayReset = true): Promise<unknown> {
    const { commands, names, clock } = this.#parts;
    // The script deletes the counters of a route itself. It cannot know the names of all records of an account.
    const isReset = mayReset && args.length > 3 && route !== undefined;
    const keys = [names.blocks(account), ...(isReset ? [names.record(account, route)] : [])];
    return blockScript.run(commands, keys, [scriptTime(clock), names.blocked(route), ...args]);
  }

  async #resetMany({ account, route }: ResetTarget): Promise<void> {
    const { commands, names } = this.#parts;
    const escaped = (name: string | undefined): string | undefined =>
      name === undefined ? undefined : names.escape(name);
    const target = { account: escaped(account), route: escaped(route) };
    const pages = scanAll(commands, names.pattern(account));
    for (;;) {
      const { done, value: page } = await this.#run('reset', () => pages.next());
      if (done) return;
      const records = page.filter((key) => {
        const record = names.parse(key);
        if (record === undefined) return false;
        return (target.account ?? record.account) === record.account && (target.route ?? record.route) === record.route;
      });
      // One command per key, because a cluster refuses a command with keys of several slots. They are sent together.
      await this.#run('reset', () => Promise.all(records.map((key) => commands.unlink(key))));
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
      calls: this.#calls.count,
      coalesced: this.#calls.coalesced,
      localRejections: denials.hits,
      timeouts: breaker.timeouts,
      late: breaker.late,
      degraded: this.#calls.decider.degraded,
      breaker: breaker.state,
    };
  }

  /** Makes one call. */
  #run<T>(operation: string, send: () => Promise<T>): Promise<T> {
    const { breaker } = this.#parts;
    return traceCall('limits', operation, breaker, () => breaker.run(send));
  }

  /** The cached rejection of a record (S20). */
  #denied(name: string, account: string, route: string, windowSet: WindowSet, cost: number): Decision | undefined {
    return this.#parts.denials.get(name, account, route, windowSet, cost, monotonicClock.now());
  }

  #keysOf(name: string, account: string, windowSet: WindowSet): string[] {
    return windowSet.allMethodsScope === 'account' ? [name, this.#parts.names.record(account)] : [name];
  }
}

function noRoom({ route }: BlockTarget): OptionError {
  const reason = `cannot be blocked, because ${MAX_BLOCKED_ROUTES} routes of the account are: block the account`;
  return new OptionError('target.route', route, reason);
}
