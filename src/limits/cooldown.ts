import { OptionError, SubjectError } from '../base/errors.ts';
import { after, isPromise, type MaybePromise } from '../base/maybe-promise.ts';
import { checkInteger, checkOneOf, checkOptions } from '../base/options.ts';
import type { BlockTarget } from '../core/block.ts';
import { type Clock, monotonicClock, wallClock } from '../core/clock.ts';
import { type CooldownReply, PROVIDER } from '../core/cooldown.ts';
import type { Decision } from '../core/decision.ts';
import type { LimitStore } from '../core/ports.ts';
import { EVERY_ROUTE } from '../core/window-set.ts';
import { retryAfterMs } from '../http/retry-after.ts';
import { LONGEST_BLOCK_MS } from './blocks.ts';
import { groupAccount } from './groups.ts';
import { groupsOf, partsOf } from './limiter-parts.ts';
import type { Limiter, LimitRequest } from './ports.ts';

/** Options of a cooldown (S30). */
export interface CooldownOptions {
  /**
   * What a provider's refusal pauses: the account on this route (`route`), all routes of the account (`account`), or every
   * account of the provider (`provider`): the group of that name, so requests say `groups: { provider: 'openai' }`, and
   * `limits.groups.provider` has a window (S31). A request without that group is not paused.
   * @default 'route'
   */
  readonly scope?: 'account' | 'route' | 'provider' | undefined;
  /**
   * How long the pause is if the provider does not say, in milliseconds. Each refusal in a row doubles it, up to a minute.
   * @default 1_000
   */
  readonly defaultMs?: number | undefined;
  /**
   * The longest pause, in milliseconds, whatever the provider asks for: up to a year.
   * @default 3_600_000
   */
  readonly maxMs?: number | undefined;
  /**
   * The statuses of a refusal. A 503 with `retry-after` is one, too.
   * @default [429]
   */
  readonly statuses?: readonly number[] | undefined;
}

/** A response of a provider: that of `fetch`, or its status and header fields. */
export interface ProviderResponse {
  readonly status: number;
  /** `Headers`, or an object with the fields by their names. */
  readonly headers:
    | { get(name: string): string | null }
    | Readonly<Record<string, string | number | readonly string[] | undefined>>;
}

/** What a provider's answer changed. */
export interface CooldownReport {
  /** `started`: the target is paused. `ended`: the provider accepted the first request after a pause. */
  readonly state: 'started' | 'ended';
  readonly target: BlockTarget;
  /** How long the pause is, in milliseconds; 0 if it ended. */
  readonly forMs: number;
}

/** {@link CooldownOptions} with their defaults. */
export type CooldownSettings = Required<{ [Name in keyof CooldownOptions]: NonNullable<CooldownOptions[Name]> }>;

/** Reads a header field by its name in lower case. */
export type ReadField = (name: string) => string | null | undefined;

const OPTIONS = ['scope', 'defaultMs', 'maxMs', 'statuses'];
const GROUP = 'provider';
const NO_GROUP = "needs the group limits.groups.provider, such as { provider: ['1000/1m'] }";
const NOT_STATUSES = 'must be a list of HTTP statuses from 400 to 599';
const NOT_RESPONSE =
  'must be the response of fetch, or an object such as { status: 429, headers: { "retry-after": "3" } }';
/** Most targets that a process remembers. Whoever is forgotten does not try alone; the block holds. */
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
 * The settings; undefined without a cooldown.
 * @throws OptionError
 */
export function cooldownSettings(given: boolean | CooldownOptions | undefined): CooldownSettings | undefined {
  if (given === undefined || given === false) return undefined;
  const options = given === true ? {} : given;
  checkOptions(options, OPTIONS, 'cooldown');
  const { scope = 'route', maxMs = 3_600_000, statuses = [429] } = options;
  const { defaultMs = Math.min(1_000, maxMs) } = options;
  checkOneOf('cooldown.scope', scope, ['account', 'route', 'provider']);
  checkInteger('cooldown.maxMs', maxMs, 1, LONGEST_BLOCK_MS);
  checkInteger('cooldown.defaultMs', defaultMs, 1, maxMs);
  const isStatus = (one: unknown): boolean => Number.isInteger(one) && (one as number) >= 400 && (one as number) < 600;
  if (!Array.isArray(statuses) || statuses.length === 0 || !statuses.every(isStatus))
    throw new OptionError('cooldown.statuses', statuses, NOT_STATUSES);
  return { scope, defaultMs, maxMs, statuses };
}

/**
 * Reads a field of the response.
 * @throws OptionError
 */
export function fieldsOf(response: ProviderResponse): ReadField {
  const { status, headers } = Object(response) as Partial<ProviderResponse>;
  if (!Number.isInteger(status) || typeof headers !== 'object' || headers === null)
    throw new OptionError('response', response, NOT_RESPONSE);
  if (isHeaders(headers)) return (name) => headers.get(name);
  const fields = Object.entries(headers);
  return (name) => {
    const value = fields.find(([other]) => other.toLowerCase() === name)?.[1];
    return value === undefined ? undefined : String(value);
  };
}

function isHeaders(headers: ProviderResponse['headers']): headers is { get(name: string): string | null } {
  return typeof headers.get === 'function';
}

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
    const reply = this.#store.cooldown(target, { kind: 'probe' });
    if (!isPromise(reply)) return reply.state;
    // Without the store, nobody knows whether another request tries.
    const asking = reply.then(
      ({ state }) => state,
      () => 'started' as const,
    );
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
