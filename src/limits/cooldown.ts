import { OptionError, SubjectError } from '../base/errors.ts';
import { after, isPromise, type MaybePromise } from '../base/maybe-promise.ts';
import type { BlockTarget } from '../core/block.ts';
import { type Clock, monotonicClock, wallClock } from '../core/clock.ts';
import { type CooldownReply, PROVIDER } from '../core/cooldown.ts';
import type { Decision } from '../core/decision.ts';
import type { LimitStore } from '../core/ports.ts';
import { EVERY_ROUTE } from '../core/window-set.ts';
import { retryAfterMs } from '../http/retry-after.ts';
import type { CooldownSettings, ReadField } from './cooldown-options.ts';
import { groupAccount } from './groups.ts';
import { groupsOf, partsOf } from './limiter-parts.ts';
import type { Limiter, LimitRequest } from './ports.ts';

/** What a provider's answer changed. */
export interface CooldownReport {
  /** `started`: the target is paused. `ended`: the provider accepted the first request after a pause. */
  readonly state: 'started' | 'ended';
  readonly target: BlockTarget;
  /** How long the pause is, in milliseconds; 0 if it ended. */
  readonly forMs: number;
}

const GROUP = 'provider';
const NO_GROUP = "needs the group limits.groups.provider, such as { provider: ['1000/1m'] }";
/** Most targets that a process remembers. For a forgotten one, no request tries alone; the block holds. */
const MAX_KNOWN = 10_000;
/** A request that finds another one trying asks so often. Then it goes. */
const MAX_ATTEMPTS = 3;
/**
 * When a request was admitted, on this process's clock, whether it tries, and its provider. On the decision, which the
 * caller has.
 */
const ADMITTED = /* @__PURE__ */ Symbol('headgate.admittedAt');
const TRIES = /* @__PURE__ */ Symbol('headgate.tries');
const PROVIDED_BY = /* @__PURE__ */ Symbol('headgate.provider');

type CooldownStore = LimitStore & Required<Pick<LimitStore, 'cooldown'>>;
type MarkedDecision = Decision & { [ADMITTED]?: number; [TRIES]?: boolean; [PROVIDED_BY]?: string | undefined };

/** The request of an answer: its account and route, and its groups if `scope` is `provider`. Or its decision. */
export type CooldownSubject = Pick<LimitRequest, 'account' | 'route' | 'groups'>;

/** What this process knows of the cooldown of one target. Times are on its own clock. */
interface Known {
  /** When the pause began, as far as it is known here. Answers to earlier requests belong to it. */
  since: number;
  /** When the pause is over. Then, a request has to try. */
  until: number;
  isPaused: boolean;
  /** Whether a request of this process tries now. */
  isTrying: boolean;
  /** Set while a request asks whether it may try. */
  asking: Promise<CooldownReply['state']> | undefined;
}

/** Shared by all gates and workers of a store. */
const knownOf = /* @__PURE__ */ new WeakMap<LimitStore, Map<string, Known>>();

/**
 * Pauses accounts whose provider refuses requests (S30), in every process that shares the store. After a pause, the first
 * request goes alone.
 */
export class Cooldown implements Pick<Limiter, 'synchronous' | 'consume' | 'consumeSync'> {
  readonly #limiter: Limiter;
  readonly #store: CooldownStore;
  readonly #settings: CooldownSettings;
  readonly #clock: Clock;
  readonly #known: Map<string, Known>;

  /** @throws OptionError if the store of the limiter cannot do this */
  constructor(limiter: Limiter, settings: CooldownSettings, clock: Clock = monotonicClock) {
    this.#clock = clock;
    const store = partsOf(limiter)?.store;
    if (typeof store?.cooldown !== 'function')
      throw new OptionError(
        'cooldown',
        settings,
        'needs a limiter of createLimiter(), and a store with cooldown()',
        'given',
      );
    // A function `limits` says only with a request which groups it has.
    const isFunction = (partsOf(limiter)?.windowSets as { readonly mayWait?: boolean } | undefined)?.mayWait;
    if (settings.scope === 'provider' && !isFunction && !groupsOf(limiter).includes(GROUP))
      throw new OptionError('cooldown.scope', settings.scope, NO_GROUP);
    this.#limiter = limiter;
    this.#store = store as CooldownStore;
    this.#settings = settings;
    let known = knownOf.get(store);
    if (known === undefined) {
      known = new Map();
      knownOf.set(store, known);
    }
    this.#known = known;
  }

  get synchronous(): boolean {
    return this.#limiter.synchronous;
  }

  /** Like `consume` of the limiter, and rejects requests that wait for the one that tries. */
  consume(request: LimitRequest): Promise<Decision> {
    return this.#limiter.consume(request).then((decision) => this.#decided(request, decision));
  }

  /** The same without a promise, if the limiter is synchronous. */
  consumeSync(request: LimitRequest): Decision {
    return this.#decided(request, this.#limiter.consumeSync(request)) as Decision;
  }

  /** The decision that counts for a request: the limiter's, unless a pause is just over and another request tries. */
  #decided(request: LimitRequest, decision: Decision, attempt = 1): MaybePromise<Decision> {
    const now = this.#clock.now();
    const marked = decision as MarkedDecision;
    if (this.#settings.scope === 'provider') marked[PROVIDED_BY] = request.groups?.[GROUP];
    const { accepted, blocked, degraded } = decision;
    if (accepted) marked[ADMITTED] = now;
    // Nearly always nothing is paused.
    else if (blocked?.reason !== PROVIDER) return decision;
    if (this.#known.size === 0 && accepted) return decision;
    const target = this.#targetOf(decision);
    if (target === undefined) return decision;
    if (!accepted) this.#pause(target, blocked?.forMs ?? 0, now);
    const known = this.#known.get(keyOf(target));
    const mustTry = accepted && !degraded && known?.isPaused === true && attempt <= MAX_ATTEMPTS;
    return mustTry ? this.#try(request, decision, target, known, attempt) : decision;
  }

  /**
   * Takes an answer of the provider into account. Answers to requests that were admitted before a pause do not change it.
   * @param subject the decision about the request; or its account and route, which cannot tell when the request was admitted
   * @returns what changed; undefined if nothing did
   * @throws or rejects with the store's errors: then the next refusal calls the store again
   */
  report(subject: CooldownSubject, status: number, field: ReadField): MaybePromise<CooldownReport | undefined> {
    const target = this.#targetOf(subject);
    if (target === undefined) return undefined;
    const known = this.#known.get(keyOf(target));
    const { [ADMITTED]: admittedAt, [TRIES]: tries } = subject as MarkedDecision;
    const isProbe = tries ?? (admittedAt === undefined && known?.isTrying === true);
    if (!this.isRefusal(status, field)) {
      if (!isProbe) return undefined;
      return after(this.#store.cooldown(target, { kind: 'end' }), () => {
        if (known !== undefined) resume(known);
        return { state: 'ended', target, forMs: 0 };
      });
    }
    const now = this.#clock.now();
    const isOld = known !== undefined && admittedAt !== undefined && admittedAt <= known.since;
    if (!isProbe && (isOld || now < (known?.until ?? 0))) return undefined;
    return this.#start(target, isProbe, field, now);
  }

  /** Whether a response means that the provider takes no more requests now. */
  isRefusal(status: number, field: ReadField): boolean {
    return this.#settings.statuses.includes(status) || (status === 503 && retryAfterMs(field, 0) !== undefined);
  }

  #start(
    target: BlockTarget,
    isProbe: boolean,
    field: ReadField,
    now: number,
  ): MaybePromise<CooldownReport | undefined> {
    const { defaultMs, maxMs } = this.#settings;
    const askedMs = retryAfterMs(field, wallClock.now());
    // A pause of 0 would be none.
    const forMs = askedMs === undefined || askedMs === 0 ? undefined : Math.min(askedMs, maxMs);
    // At once, so that of many answers at a time only one calls the store.
    const known = this.#pause(target, forMs ?? defaultMs, now);
    known.isTrying = false;
    const failed = (error: unknown): never => {
      resume(known);
      // The answers to earlier requests count again.
      known.since = 0;
      throw error;
    };
    const started = (reply: CooldownReply): CooldownReport | undefined => {
      if (reply.state !== 'started') return undefined;
      known.until = this.#clock.now() + reply.forMs;
      return { state: 'started', target, forMs: reply.forMs };
    };
    try {
      const reply = this.#store.cooldown(target, { kind: 'start', forMs, defaultMs, maxMs, isProbe });
      return isPromise(reply) ? reply.then(started, failed) : started(reply);
    } catch (error) {
      return failed(error);
    }
  }

  /** Asks the store whether a request that fits its windows may try. Nothing else may go meanwhile. */
  #try(
    request: LimitRequest,
    decision: Decision,
    target: BlockTarget,
    known: Known,
    attempt: number,
  ): MaybePromise<Decision> {
    return after(known.asking?.then(ofAnother) ?? this.#ask(target, known), (answer) => {
      if (answer === 'open') resume(known);
      if (answer === 'probe') {
        known.isTrying = true;
        (decision as MarkedDecision)[TRIES] = true;
      }
      if (answer !== 'blocked') return decision;
      // It does not run, so it also gives its place among the requests in flight back (S29).
      const givenBack = Promise.allSettled([this.#limiter.refund(decision), this.#limiter.release(decision)]);
      const again = (): MaybePromise<Decision> =>
        after(this.#consume(request), (found) => this.#decided(request, found, attempt + 1));
      return this.#limiter.synchronous ? again() : givenBack.then(again);
    });
  }

  #ask(target: BlockTarget, known: Known): MaybePromise<CooldownReply['state']> {
    // Without the store, it is unknown whether another request tries. The request was accepted, so it goes.
    const unknown = (): CooldownReply => ({ state: 'started', forMs: 0 });
    let reply: MaybePromise<CooldownReply>;
    try {
      reply = this.#store.cooldown(target, { kind: 'probe' });
    } catch {
      return unknown().state;
    }
    if (!isPromise(reply)) return reply.state;
    const asking = reply.catch(unknown).then(({ state }) => state);
    known.asking = asking;
    return asking.finally(() => {
      known.asking = undefined;
    });
  }

  #consume(request: LimitRequest): MaybePromise<Decision> {
    return this.#limiter.synchronous ? this.#limiter.consumeSync(request) : this.#limiter.consume(request);
  }

  #pause(target: BlockTarget, forMs: number, now: number): Known {
    const key = keyOf(target);
    let known = this.#known.get(key);
    if (known === undefined) {
      const [oldest] = this.#known.size < MAX_KNOWN ? [] : this.#known.keys();
      if (oldest !== undefined) this.#known.delete(oldest);
      known = { since: now, until: 0, isPaused: false, isTrying: false, asking: undefined };
      this.#known.set(key, known);
    }
    if (!known.isPaused) known.since = now;
    known.isPaused = true;
    known.until = now + forMs;
    return known;
  }

  /** Undefined if the request has no provider. */
  #targetOf(subject: CooldownSubject): BlockTarget | undefined {
    const { account, route = EVERY_ROUTE, groups } = subject;
    if (typeof account !== 'string') throw new SubjectError('account', account);
    const { scope } = this.#settings;
    if (scope !== 'provider') return scope === 'account' ? { account } : { account, route };
    const id = (subject as MarkedDecision)[PROVIDED_BY] ?? groups?.[GROUP];
    return id === undefined ? undefined : { account: groupAccount(GROUP, id) };
  }
}

function resume(known: Known): void {
  known.isPaused = false;
  known.isTrying = false;
  known.until = 0;
}

/** The state for a request that did not ask itself. */
function ofAnother(state: CooldownReply['state']): CooldownReply['state'] {
  return state === 'probe' ? 'blocked' : state;
}

/** The length in front determines the end of the account. */
function keyOf({ account, route }: BlockTarget): string {
  return `${account.length}:${account}${route === undefined ? '' : `:${route}`}`;
}
