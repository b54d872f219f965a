import { type Clock, monotonicClock } from '../../core/clock.ts';
import { charge, Decision, evaluate, FITS, type WindowStatus, windowStatus } from '../../core/decision.ts';
import { OptionError, StoreUnavailableError } from '../../core/errors.ts';
import type { Plan } from '../../core/plan.ts';
import type { LimitStore, ResetTarget } from '../../core/ports.ts';
import { type Counters, SLOTS_PER_WINDOW } from '../../core/window.ts';
import { createFailover, type Failover } from '../shared/failover.ts';
import { Guard } from '../shared/guard.ts';
import { type Check, type Group, Turn } from '../shared/turn.ts';
import { type Commands, commandsOf, type RedisClient } from './client.ts';
import { Denials } from './denials.ts';
import { createKeyNames, type KeyNames } from './keys.ts';
import { layoutOf, windowName } from './layout.ts';
import consumeSource from './lua/consume.lua';
import refundSource from './lua/refund.lua';
import { fillOptions, type RedisStoreOptions } from './options.ts';
import { type ConsumeReply, readConsumeReply, readRefundReply } from './reply.ts';
import { createScript } from './script.ts';

export type { RedisStoreOptions } from './options.ts';

/** What an operator sees of a Redis store, since its start. */
export interface RedisStoreStats {
  /** Script calls that travelled. */
  readonly calls: number;
  /** Decisions that travelled with another one's call. */
  readonly coalesced: number;
  /** Rejections answered here (S20). */
  readonly localRejections: number;
  /** Calls given up at their deadline, and those of them whose command was answered after all. */
  readonly timeouts: number;
  /** Answers that came after their command had been given up: counted in `timeouts` before. */
  readonly late: number;
  /** Decisions of `onStoreFailure`. */
  readonly degraded: number;
  /** `open`: Redis is taken for away, and asked again twice a second. */
  readonly breaker: 'closed' | 'open' | 'half-open';
}

/** A {@link LimitStore} in Redis or Redis Cluster, shared by any number of processes. */
export interface RedisStore extends LimitStore {
  /** Its figures, as they are now. */
  stats(): RedisStoreStats;
}

const consumeScript = /* @__PURE__ */ createScript(consumeSource);
const refundScript = /* @__PURE__ */ createScript(refundSource);

/**
 * Counters in Redis: one string per (account, route), one atomic script and one round trip a decision, however many windows.
 * The client stays yours: the store never connects, configures or closes it.
 * @throws OptionError
 */
export function createRedisStore(client: RedisClient, options: RedisStoreOptions = {}): RedisStore {
  const { prefix, deadlineMs, onStoreFailure, localMaxKeys, onError, denyCacheMaxMs, denyCacheMaxKeys, clock } =
    fillOptions(options);
  const commands = commandsOf(client);
  if (commands === undefined) throw new OptionError('client', client, 'must be a client of ioredis or node-redis');
  return new Store({
    commands,
    names: createKeyNames(prefix),
    guard: new Guard({ deadlineMs, isReady: commands.isReady, onError }),
    failover: createFailover(onStoreFailure, localMaxKeys),
    denials: new Denials({ maxMs: clock === undefined ? denyCacheMaxMs : 0, maxKeys: denyCacheMaxKeys }),
    onError,
    clock,
  });
}

/** What a store is made of. */
interface Parts {
  readonly commands: Commands;
  readonly names: KeyNames;
  readonly guard: Guard;
  readonly failover: Failover;
  readonly denials: Denials;
  readonly onError: ((error: unknown) => void) | undefined;
  readonly clock: Clock | undefined;
}

class Store implements RedisStore {
  readonly synchronous = false;
  readonly #parts: Parts;
  readonly #turn: Turn;
  #calls = 0;
  #coalesced = 0;
  #degraded = 0;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#turn = new Turn({
      oneAccountAGroup: parts.commands.isCluster,
      send: (groups) => {
        for (const group of groups) void this.#decide(group);
      },
    });
  }

  consume(account: string, route: string, plan: Plan, cost: number): Decision | Promise<Decision> {
    // Not limited: nothing to ask.
    if (plan.windows.length === 0) return new Decision(account, route, plan, cost, monotonicClock.now(), FITS, []);
    const name = this.#parts.names.record(account, route);
    const denied = this.#parts.denials.get(name, account, route, plan, cost, monotonicClock.now());
    return denied ?? this.#turn.add({ keys: this.#keysOf(name, account, plan), account, route, plan, cost });
  }

  async peek(account: string, route: string, plan: Plan): Promise<readonly WindowStatus[]> {
    if (plan.windows.length === 0) return [];
    const name = this.#parts.names.record(account, route);
    const check = { keys: this.#keysOf(name, account, plan), account, route, waiting: [] };
    const { now, checks } = await this.#ask({ plan, cost: 1, checks: [check], place: 0 });
    const counters = checks[0] as Counters | number;
    if (typeof counters === 'number') throw this.#faultOf(check.keys[counters]);
    return plan.windows.map((window, i) => windowStatus(window, counters, i * SLOTS_PER_WINDOW, now, 0));
  }

  async refund(decision: Decision): Promise<boolean> {
    const { commands, names, guard, failover } = this.#parts;
    if (decision.degraded) return failover.refund(decision);
    if (!decision.takeRefund()) return false;
    const { account, route, plan, cost, trace } = decision;
    const windows = trace.flatMap((window) => [windowName(window), String(window.startedAt)]);
    const args = [this.#now(), String(cost), String(layoutOf(plan).ownWindows), ...windows];
    const name = names.record(account, route);
    const keys = this.#keysOf(name, account, plan);
    return this.#changing(plan.allMethodsScope === 'account' ? undefined : name, () =>
      guard.run(async () => readRefundReply(await refundScript.run(commands, keys, args)) > 0),
    );
  }

  async reset(target: ResetTarget): Promise<void> {
    const { commands, names, guard } = this.#parts;
    const { account, route } = target;
    if (account !== undefined && route !== undefined) {
      const name = names.record(account, route);
      await this.#changing(name, () => guard.run(() => commands.unlink(name)));
      return;
    }
    await this.#changing(undefined, () => this.#resetMany(target));
  }

  async #resetMany({ account, route }: ResetTarget): Promise<void> {
    const { commands, names, guard } = this.#parts;
    const escaped = (name: string | undefined): string | undefined =>
      name === undefined ? undefined : names.escape(name);
    const wanted = { account: escaped(account), route: escaped(route) };
    const pages = commands.scan(names.pattern(account))[Symbol.asyncIterator]();
    for (;;) {
      const { done, value: page } = await guard.run(() => pages.next());
      if (done) return;
      const ours = page.filter((key) => {
        const record = names.parse(key);
        if (record === undefined) return false;
        return (wanted.account ?? record.account) === record.account && (wanted.route ?? record.route) === record.route;
      });
      // One by one, since keys of several slots cannot go in one command of a cluster; they are still written together.
      await guard.run(() => Promise.all(ours.map((key) => commands.unlink(key))));
    }
  }

  /** Rejections are forgotten before, and after once more: an answer to a check that overtook the change is out of date. */
  async #changing<T>(name: string | undefined, change: () => Promise<T>): Promise<T> {
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

  stats(): RedisStoreStats {
    const { denials, guard } = this.#parts;
    return {
      calls: this.#calls,
      coalesced: this.#coalesced,
      localRejections: denials.hits,
      timeouts: guard.timeouts,
      late: guard.late,
      degraded: this.#degraded,
      breaker: guard.state,
    };
  }

  async #decide(group: Group): Promise<void> {
    const sentAt = monotonicClock.now();
    try {
      const { now, checks } = await this.#ask(group);
      const heardAt = monotonicClock.now();
      for (const [i, check] of group.checks.entries()) {
        const counters = checks[i] as Counters | number;
        if (typeof counters === 'number') this.#failOver(check, group, this.#faultOf(check.keys[counters]));
        else this.#dealOut(check, group, counters, now, sentAt, heardAt);
      }
    } catch (error) {
      if (group.checks.length > 1 && isHalfMoved(error)) {
        for (const check of group.checks) void this.#decide({ ...group, checks: [check] });
      } else for (const check of group.checks) this.#failOver(check, group, error);
    }
  }

  /** The rule itself deals decisions out to those that were sent as a number, one after the other, from where the script began. */
  #dealOut(check: Check, group: Group, counters: Counters, now: number, sentAt: number, heardAt: number): void {
    const { keys, account, route, waiting } = check;
    const { plan, cost } = group;
    let left = waiting.length;
    for (const { resolve } of waiting) {
      const rejectedBy = evaluate(plan, counters, 0, cost, now);
      if (rejectedBy === FITS) charge(plan, counters, 0, cost, now);
      const seen = --left === 0 ? counters : counters.slice();
      const decision = new Decision(account, route, plan, cost, now, rejectedBy, seen);
      if (rejectedBy !== FITS)
        this.#parts.denials.remember(keys[0] as string, decision, rejectedBy, seen, sentAt, heardAt);
      resolve(decision);
    }
  }

  #failOver({ account, route, waiting }: Check, { plan, cost }: Group, error: unknown): void {
    for (const { resolve, reject } of waiting) {
      try {
        resolve(this.#parts.failover.decide(account, route, plan, cost, error));
        this.#degraded++;
      } catch (refusal) {
        reject(refusal);
      }
    }
  }

  async #ask({ plan, cost, checks }: Group): Promise<ConsumeReply> {
    const { commands, guard } = this.#parts;
    const keys: string[] = [];
    let decisions = 0;
    for (const check of checks) {
      keys.push(...check.keys);
      decisions += check.waiting.length;
    }
    const { listEnd, heads } = layoutOf(plan);
    const args = [this.#now(), `[${cost},${listEnd}`, ...heads];
    // A peek is a check that nobody waits for.
    if (checks.some(({ waiting }) => waiting.length !== 1))
      for (const { waiting } of checks) args.push(String(waiting.length));
    this.#calls++;
    this.#coalesced += Math.max(0, decisions - 1);
    // An answer that makes no sense is a failure like any other.
    return guard.run(async () =>
      readConsumeReply(await consumeScript.run(commands, keys, args), checks.length, plan.windows.length),
    );
  }

  /** A record that is not ours: its fault alone, which the breaker does not count. */
  #faultOf(key: string | undefined): StoreUnavailableError {
    const error = new Error(`the record ${key} is not one of headgate's`);
    this.#parts.onError?.(error);
    return new StoreUnavailableError(error);
  }

  #keysOf(name: string, account: string, plan: Plan): string[] {
    return plan.allMethodsScope === 'account' ? [name, this.#parts.names.record(account)] : [name];
  }

  /** '' asks for the server's own clock. */
  #now(): string {
    const { clock } = this.#parts;
    return clock === undefined ? '' : String(clock.now());
  }
}

/** Of a call's keys some are on one node of a cluster, some on another: nothing was done, and one by one they are found. */
function isHalfMoved(error: unknown): boolean {
  const { cause } = error as { cause?: unknown };
  return cause instanceof Error && cause.message.startsWith('TRYAGAIN');
}
