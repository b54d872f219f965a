import { type Clock, monotonicClock } from '../../core/clock.ts';
import { charge, Decision, evaluate, FITS, type WindowStatus, windowStatus } from '../../core/decision.ts';
import { OptionError } from '../../core/errors.ts';
import { checkOptions } from '../../core/options.ts';
import type { Plan } from '../../core/plan.ts';
import type { LimitStore, ResetTarget } from '../../core/ports.ts';
import { SLOTS_PER_WINDOW } from '../../core/window.ts';
import { type Commands, commandsOf, type RedisClient } from './client.ts';
import { Denials } from './denials.ts';
import { createFailover, type Failover, type OnStoreFailure } from './failover.ts';
import { Guard } from './guard.ts';
import { createKeyNames, type KeyNames } from './keys.ts';
import consumeSource from './lua/consume.lua';
import refundSource from './lua/refund.lua';
import { type ConsumeReply, readConsumeReply, readRefundReply } from './reply.ts';
import { createScript } from './script.ts';

/** Options of {@link createRedisStore}. */
export interface RedisStoreOptions {
  /**
   * In front of every key, so that several gateways can share a server without meeting.
   * @default 'headgate'
   */
  readonly prefix?: string;
  /**
   * Longest wait for one answer, in milliseconds. Past it `onStoreFailure` decides; the command may still land, which `stats().late` counts.
   * @default 250
   */
  readonly deadlineMs?: number;
  /**
   * Who decides while Redis is slow, gone, or refuses.
   * @default 'local'
   */
  readonly onStoreFailure?: OnStoreFailure;
  /**
   * With `local`: most (account, route) pairs that this process's memory holds meanwhile.
   * @default 65_536
   */
  readonly localMaxKeys?: number;
  /** Hears of every call that failed, for a log. */
  readonly onError?: ((error: unknown) => void) | undefined;
  /**
   * A rejection is certain until its window ends, and answered here without asking again, for at most this many milliseconds: the price is
   * that a limit raised, reset or refunded by another process is noticed that much later. 0 switches it off.
   * @default 1_000
   */
  readonly denyCacheMaxMs?: number;
  /**
   * Most rejections remembered at a time.
   * @default 10_000
   */
  readonly denyCacheMaxKeys?: number;
  /**
   * For tests: time in integer milliseconds instead of the server's own (S15). Rejections are not remembered then.
   * @default the server's clock
   */
  readonly clock?: Clock | undefined;
}

/** What an operator sees of a Redis store, since its start. */
export interface RedisStoreStats {
  /** Calls that travelled, and the checks that travelled as part of another's. */
  readonly calls: number;
  readonly coalesced: number;
  /** Rejections answered here (S20). */
  readonly localRejections: number;
  /** Calls given up at their deadline, and those of them whose command was answered after all. */
  readonly timeouts: number;
  readonly late: number;
  /** Decisions of `onStoreFailure`. */
  readonly degraded: number;
  /** `open`: Redis is taken for away, and asked again twice a second. */
  readonly breaker: 'closed' | 'open' | 'half-open';
}

/** A {@link LimitStore} in Redis or Redis Cluster, shared by any number of processes. */
export interface RedisStore extends LimitStore {
  stats(): RedisStoreStats;
}

/** Checks of one kind that came in one turn of the event loop. */
interface Batch {
  readonly account: string;
  readonly route: string;
  readonly plan: Plan;
  readonly cost: number;
  readonly waiting: { resolve(decision: Decision): void; reject(error: unknown): void }[];
}

const OPTIONS = [
  'prefix',
  'deadlineMs',
  'onStoreFailure',
  'localMaxKeys',
  'onError',
  'denyCacheMaxMs',
  'denyCacheMaxKeys',
  'clock',
];
const POLICIES: readonly OnStoreFailure[] = ['local', 'admit', 'refuse'];

const consumeScript = createScript(consumeSource);
const refundScript = createScript(refundSource);

/**
 * Counters in Redis: one string per (account, route), one atomic script and one round trip a decision, however many windows.
 * The client stays yours: the store never connects, configures or closes it.
 * @throws OptionError
 */
export function createRedisStore(client: RedisClient, options: RedisStoreOptions = {}): RedisStore {
  checkOptions(options, OPTIONS, 'options');
  const commands = commandsOf(client);
  if (commands === undefined) throw new OptionError('client', client, 'must be a client of ioredis or node-redis');
  const { prefix = 'headgate', deadlineMs = 250, denyCacheMaxMs = 1_000, denyCacheMaxKeys = 10_000 } = options;
  const { onStoreFailure = 'local', localMaxKeys, onError, clock } = options;
  if (typeof prefix !== 'string' || /[{}]/.test(prefix)) {
    throw new OptionError('prefix', prefix, 'must be a string without braces');
  }
  checkInteger('deadlineMs', deadlineMs, 1);
  checkInteger('denyCacheMaxMs', denyCacheMaxMs, 0);
  checkInteger('denyCacheMaxKeys', denyCacheMaxKeys, 1);
  if (!POLICIES.includes(onStoreFailure)) {
    throw new OptionError('onStoreFailure', onStoreFailure, `must be one of ${POLICIES.join(', ')}`);
  }
  return new Store({
    commands,
    names: createKeyNames(prefix),
    guard: new Guard({ deadlineMs, isReady: commands.isReady, onError }),
    failover: createFailover(onStoreFailure, localMaxKeys),
    denials: new Denials({ maxMs: clock === undefined ? denyCacheMaxMs : 0, maxKeys: denyCacheMaxKeys }),
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
  readonly clock: Clock | undefined;
}

class Store implements RedisStore {
  readonly synchronous = false;
  readonly #commands: Commands;
  readonly #names: KeyNames;
  readonly #guard: Guard;
  readonly #failover: Failover;
  readonly #denials: Denials;
  readonly #clock: Clock | undefined;
  /** Of this turn of the event loop, by record; then by plan and cost, in the order in which they came. */
  #batches = new Map<string, Batch[]>();
  #calls = 0;
  #coalesced = 0;
  #degraded = 0;

  constructor({ commands, names, guard, failover, denials, clock }: Parts) {
    this.#commands = commands;
    this.#names = names;
    this.#guard = guard;
    this.#failover = failover;
    this.#denials = denials;
    this.#clock = clock;
  }

  consume(account: string, route: string, plan: Plan, cost: number): Decision | Promise<Decision> {
    // Not limited: nothing to ask.
    if (plan.windows.length === 0) return new Decision(account, route, plan, cost, monotonicClock.now(), FITS, []);
    const name = this.#names.record(account, route);
    const denied = this.#denials.get(name, account, route, plan, cost, monotonicClock.now());
    if (denied !== undefined) return denied;
    return new Promise((resolve, reject) =>
      this.#batch(name, account, route, plan, cost).waiting.push({ resolve, reject }),
    );
  }

  async peek(account: string, route: string, plan: Plan): Promise<readonly WindowStatus[]> {
    const { now, counters } = await this.#ask(account, route, plan, 1, 0);
    return plan.windows.map((window, i) => windowStatus(window, counters, i * SLOTS_PER_WINDOW, now, 0));
  }

  async refund(decision: Decision): Promise<boolean> {
    if (decision.degraded) return this.#failover.refund(decision);
    if (!decision.takeRefund()) return false;
    const { account, route, plan, cost, trace } = decision;
    const windows = trace.flatMap(({ limit, durationMs, startedAt }) => [
      letter(limit),
      String(durationMs),
      String(startedAt),
    ]);
    const args = [this.#now(), String(cost), String(ownWindows(plan)), ...windows];
    const keys = this.#keys(account, route, plan);
    const name = plan.allMethodsScope === 'account' ? undefined : this.#names.record(account, route);
    return this.#changing(name, () =>
      this.#guard.run(async () => readRefundReply(await refundScript.run(this.#commands, keys, args)) > 0),
    );
  }

  async reset(target: ResetTarget): Promise<void> {
    const { account, route } = target;
    if (account !== undefined && route !== undefined) {
      const name = this.#names.record(account, route);
      await this.#changing(name, () => this.#guard.run(() => this.#commands.unlink(name)));
      return;
    }
    await this.#changing(undefined, () => this.#resetMany(target));
  }

  async #resetMany({ account, route }: ResetTarget): Promise<void> {
    const wanted = { account: this.#escaped(account), route: this.#escaped(route) };
    const pages = this.#commands.scan(this.#names.pattern(account))[Symbol.asyncIterator]();
    for (;;) {
      const { done, value: page } = await this.#guard.run(() => pages.next());
      if (done) return;
      const ours = page.filter((key) => {
        const record = this.#names.parse(key);
        if (record === undefined) return false;
        return (wanted.account ?? record.account) === record.account && (wanted.route ?? record.route) === record.route;
      });
      // One by one, since keys of several slots cannot go in one command of a cluster; they are still written together.
      await this.#guard.run(() => Promise.all(ours.map((key) => this.#commands.unlink(key))));
    }
  }

  /** Rejections are forgotten before, and after once more: an answer to a check that overtook the change is out of date. */
  async #changing<T>(name: string | undefined, change: () => Promise<T>): Promise<T> {
    this.#forget(name);
    try {
      return await change();
    } finally {
      this.#forget(name);
    }
  }

  #forget(name: string | undefined): void {
    if (name === undefined) this.#denials.clear(monotonicClock.now());
    else this.#denials.forget(name, monotonicClock.now());
  }

  #escaped(name: string | undefined): string | undefined {
    return name === undefined ? undefined : this.#names.escape(name);
  }

  stats(): RedisStoreStats {
    return {
      calls: this.#calls,
      coalesced: this.#coalesced,
      localRejections: this.#denials.hits,
      timeouts: this.#guard.timeouts,
      late: this.#guard.late,
      degraded: this.#degraded,
      breaker: this.#guard.state,
    };
  }

  /** The batch of this turn that the check joins: the last one of its record, if it is of the same plan and cost, so that order is kept. */
  #batch(name: string, account: string, route: string, plan: Plan, cost: number): Batch {
    if (this.#batches.size === 0) setImmediate(() => this.#send());
    let ofRecord = this.#batches.get(name);
    if (ofRecord === undefined) {
      ofRecord = [];
      this.#batches.set(name, ofRecord);
    }
    const last = ofRecord.at(-1);
    if (last !== undefined && last.plan === plan && last.cost === cost) return last;
    const batch: Batch = { account, route, plan, cost, waiting: [] };
    ofRecord.push(batch);
    return batch;
  }

  #send(): void {
    const batches = this.#batches;
    this.#batches = new Map();
    for (const [name, ofRecord] of batches) for (const batch of ofRecord) void this.#decide(name, batch);
  }

  async #decide(name: string, { account, route, plan, cost, waiting }: Batch): Promise<void> {
    const sentAt = monotonicClock.now();
    this.#coalesced += waiting.length - 1;
    try {
      const { now, counters } = await this.#ask(account, route, plan, cost, waiting.length);
      const heardAt = monotonicClock.now();
      for (const { resolve } of waiting) {
        // The rule itself deals them out, one after the other, from where the script began.
        const rejectedBy = evaluate(plan, counters, 0, cost, now);
        if (rejectedBy === FITS) charge(plan, counters, 0, cost, now);
        const seen = counters.slice();
        const decision = new Decision(account, route, plan, cost, now, rejectedBy, seen);
        if (rejectedBy !== FITS) this.#denials.remember(name, decision, rejectedBy, seen, sentAt, heardAt);
        resolve(decision);
      }
    } catch (error) {
      for (const { resolve, reject } of waiting) {
        try {
          resolve(this.#failover.decide(account, route, plan, cost, error));
          this.#degraded++;
        } catch (refusal) {
          reject(refusal);
        }
      }
    }
  }

  async #ask(account: string, route: string, plan: Plan, cost: number, count: number): Promise<ConsumeReply> {
    const windows = plan.windows.flatMap(({ limit, max, durationMs }) => [
      letter(limit),
      String(max),
      String(durationMs),
    ]);
    const args = [this.#now(), String(cost), String(count), String(ownWindows(plan)), ...windows];
    this.#calls++;
    const keys = this.#keys(account, route, plan);
    // An answer that makes no sense is a failure like any other.
    return this.#guard.run(async () =>
      readConsumeReply(await consumeScript.run(this.#commands, keys, args), plan.windows.length),
    );
  }

  #keys(account: string, route: string, plan: Plan): string[] {
    const own = this.#names.record(account, route);
    return plan.allMethodsScope === 'account' ? [own, this.#names.record(account)] : [own];
  }

  /** '' asks for the server's own clock. */
  #now(): string {
    return this.#clock === undefined ? '' : String(this.#clock.now());
  }
}

function letter(limit: string): string {
  return limit === 'route' ? 'r' : 'a';
}

function ownWindows(plan: Plan): number {
  return plan.allMethodsScope === 'account' ? plan.routeWindows : plan.windows.length;
}

function checkInteger(option: string, value: number, least: number): void {
  if (!Number.isSafeInteger(value) || value < least)
    throw new OptionError(option, value, `must be an integer from ${least} on`);
}
