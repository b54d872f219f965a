import type { Decision, WindowStatus } from '../core/decision.ts';
import { ClosedError, CostError, OptionError, StoreNotSynchronousError, SubjectError } from '../core/errors.ts';
import type { LimitInput } from '../core/limit.ts';
import { checkOptions } from '../core/options.ts';
import type { Plan } from '../core/plan.ts';
import type { LimitStore, ResetTarget } from '../core/ports.ts';
import { type AdjustTarget, type Limits, Plans, type Subject } from './plans.ts';

/** Options of {@link createLimiter}. */
export interface LimiterOptions {
  /** Where counters live, e.g. `createMemoryStore()`. The limiter closes it on `close()`. */
  readonly store: LimitStore;
  /** Limits for everybody, in layers (default, provider, account), or found by a function of the subject. */
  readonly limits: Limits;
}

/** A subject and what its request costs. */
export interface LimitRequest extends Subject {
  /**
   * A positive integer: how much of each window the request takes (S11).
   * @default 1
   */
  readonly cost?: number | undefined;
}

/** Decides, for each account and route, whether a request fits every window of its plan. */
export interface Limiter {
  /** Whether the store answers at once, so that {@link Limiter.consumeSync} works. */
  readonly synchronous: boolean;
  /**
   * Charges every window, or rejects and charges none (S5).
   * @throws SubjectError, CostError, and what the store throws when it cannot decide; nothing was charged then
   */
  consume(request: LimitRequest): Promise<Decision>;
  /**
   * `consume` without a promise.
   * @throws StoreNotSynchronousError where the store answers later
   */
  consumeSync(request: LimitRequest): Decision;
  /** Every window of the subject's plan as it stands; changes nothing (S14). */
  peek(subject: Subject): Promise<readonly WindowStatus[]>;
  /** Takes back what an accepted decision charged, once, and only from the windows it came from (S13). Returns whether anything was. */
  refund(decision: Decision): Promise<boolean>;
  /** Forgets counters of an account, of a route, or of one route of one account (S14); with `{}`, all. */
  reset(target: ResetTarget): Promise<void>;
  /**
   * Changes a limit at run time, at once and for active windows too (S10). `'recommended'` goes back to the values that `limits` had.
   * @throws LimitError
   */
  adjust(target: AdjustTarget, windows: LimitInput | 'recommended'): void;
  /** The plan that a request of the subject has to fit now. */
  plan(subject: Subject): Plan;
  /** Closes the store. Calls after it reject. */
  close(): Promise<void>;
}

/**
 * Joins a store and limits.
 * @example
 * ```ts
 * const limiter = createLimiter({ store: createMemoryStore(), limits: { allMethods: ['60/1m', '5000/1d'] } });
 * const decision = await limiter.consume({ account: 'acc_1', route: 'POST /api/v1/emails' });
 * ```
 * @throws LimitError, OptionError naming the place of what is wrong
 */
export function createLimiter(options: LimiterOptions): Limiter {
  checkOptions(options, ['store', 'limits'], 'options');
  const { store, limits } = options;
  for (const method of ['consume', 'peek', 'refund', 'reset'] as const) {
    if (typeof store?.[method] !== 'function')
      throw new OptionError('store', store, `must have ${method}(), as createMemoryStore() does`);
  }
  return new StoreLimiter(store, new Plans(limits));
}

class StoreLimiter implements Limiter {
  readonly #store: LimitStore;
  readonly #plans: Plans;
  #closed = false;

  get synchronous(): boolean {
    return this.#store.synchronous;
  }

  constructor(store: LimitStore, plans: Plans) {
    this.#store = store;
    this.#plans = plans;
  }

  consume(request: LimitRequest): Promise<Decision> {
    // Not an async function, which costs more than the decision itself.
    try {
      const decided = this.#consume(request);
      // Where the compiler has seen that a decision has no `then`, it spares its promise the search for one, a tenth of the call.
      return isPending(decided) ? decided : Promise.resolve(decided);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  consumeSync(request: LimitRequest): Decision {
    if (!this.#store.synchronous) throw new StoreNotSynchronousError();
    return this.#consume(request) as Decision;
  }

  async peek(subject: Subject): Promise<readonly WindowStatus[]> {
    return this.#store.peek(subject.account, subject.route, this.plan(subject));
  }

  async refund(decision: Decision): Promise<boolean> {
    this.#checkOpen();
    return this.#store.refund(decision);
  }

  async reset(target: ResetTarget): Promise<void> {
    this.#checkOpen();
    checkOptions(target, ['account', 'route'], 'target');
    // Given but undefined would silently mean all of them.
    for (const field of ['account', 'route'] as const) if (field in target) checkString(field, target[field]);
    await this.#store.reset(target);
  }

  adjust(target: AdjustTarget, windows: LimitInput | 'recommended'): void {
    this.#plans.adjust(target, windows);
  }

  plan(subject: Subject): Plan {
    this.#checkOpen();
    checkString('account', subject.account);
    checkString('route', subject.route);
    if (subject.provider !== undefined) checkString('provider', subject.provider);
    return this.#plans.of(subject);
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.#store.close?.();
  }

  #consume(request: LimitRequest): Decision | Promise<Decision> {
    const { account, route, cost = 1 } = request;
    if (!Number.isSafeInteger(cost) || cost < 1) throw new CostError(cost);
    return this.#store.consume(account, route, this.plan(request), cost);
  }

  #checkOpen(): void {
    if (this.#closed) throw new ClosedError('the limiter');
  }
}

function isPending(decided: Decision | Promise<Decision>): decided is Promise<Decision> {
  return (decided as { readonly then?: unknown }).then !== undefined;
}

function checkString(field: string, value: unknown): void {
  if (typeof value !== 'string') throw new SubjectError(field, value);
}
