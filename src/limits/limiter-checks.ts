import { builtinModule } from '../base/builtin-module.ts';
import { describe } from '../base/errors.ts';
import { isPromise, type MaybePromise } from '../base/maybe-promise.ts';
import { type AdjustTarget, placeOfTarget } from '../core/adjustment.ts';
import { countersOf } from '../core/counters.ts';
import type { Decision } from '../core/decision.ts';
import { formatWindow, type Limit, type LimitWindow } from '../core/limit.ts';
import { isSeconds, type MisuseCode, type MisuseLog } from '../core/misuse.ts';
import type { LimitStore } from '../core/ports.ts';
import { shareOfMax, type WindowSet } from '../core/window-set.ts';
import { isMemoryStore } from '../stores/memory/limits.ts';
import type { Lanes } from './lanes.ts';
import { LatestLimiters } from './latest-limiters.ts';
import type { LimitRequest } from './ports.ts';
import { isWindowSetSource, type Limits, type WindowSetSource } from './window-set-source.ts';

/** Decisions after which every route with limits of its own should have been seen. */
const DECISIONS = 1_000;
/** Most different names of routes. An API offers hundreds of operations at most. */
const MAX_ROUTES = 1_000;
/** After the first {@link DECISIONS}, only every 64th decision is looked at, so that the others cost nothing. */
const LOOKED_AT = 64;
/** So many rejections among the first {@link DECISIONS} that nothing looks at are probably a mistake. */
const IGNORED = 10;
/** What a missing field becomes in a text. */
const MISSING = /(?:^|\W)(undefined|null|NaN)(?:\W|$)|\[object \w+\]/;
/** Most names that a warning shows. */
const SHOWN_NAMES = 5;
/** The fields of a request. */
const FIELDS: readonly (keyof LimitRequest)[] = [
  'account',
  'route',
  'provider',
  'plan',
  'groups',
  'lane',
  'limits',
  'cost',
];
/** The names of the cost in other libraries. */
const COST_ELSEWHERE: readonly string[] = ['points', 'weight', 'penalty', 'tokens', 'units'];

/** The limits of the limiter that uses the counters, by the identity of the counters. */
const limitsByCounters = /* @__PURE__ */ new WeakMap<object, Limits | WindowSetSource>();
/** The same by their place on a server, which two clients may have. Bounded. */
const limitsByPlace = /* @__PURE__ */ new Map<string, Limits | WindowSetSource>();
const MAX_PLACES = 1_000;

/** Those of this process. */
const latestLimiters = /* @__PURE__ */ new LatestLimiters();

/** What some of the first requests should meet. */
interface Expectation {
  readonly code: MisuseCode;
  readonly isMet: (request: LimitRequest, windowSet: WindowSet) => boolean;
  /** What all of them did instead. */
  readonly instead: string;
}

/** The limits, as far as it is known what they name. */
export interface NamedLimits
  extends Pick<WindowSetSource, 'limitedRoutes' | 'layerFields' | 'groups' | 'units' | 'lanes'> {
  /** The accounts that have limits of their own. */
  readonly namedAccounts?: readonly string[] | undefined;
  /** Whether they are known not to say of any account that it is unlimited. */
  readonly isLimited?: boolean | undefined;
}

function expectationsOf({
  layerFields = [],
  groups = [],
  units = [],
  lanes = [],
  namedAccounts = [],
  isLimited = false,
}: NamedLimits): Expectation[] {
  const accounts = new Set(namedAccounts);
  const codes = { plan: 'HG_PLAN_NEVER_SEEN', provider: 'HG_PROVIDER_NEVER_SEEN' } as const;
  const expectations: (Expectation | false)[] = [
    ...layerFields.map((field) => ({
      code: codes[field],
      isMet: (request: LimitRequest) => request[field] !== undefined,
      instead: `had no ${field}, so limits.${field}s never applied`,
    })),
    ...units.map((unit) => ({
      code: 'HG_UNIT_NEVER_SEEN' as const,
      isMet: ({ cost }: LimitRequest) => Object.hasOwn(Object(cost), unit),
      instead: `had no cost in ${unit}, so windows of ${unit} never applied`,
    })),
    ...groups.map((group) => ({
      code: 'HG_GROUP_NEVER_SEEN' as const,
      isMet: (request: LimitRequest) => request.groups?.[group] !== undefined,
      instead: `had no group ${describe(group)}, so its limits never applied`,
    })),
    accounts.size > 0 && {
      code: 'HG_ACCOUNT_NEVER_SEEN',
      isMet: ({ account }) => accounts.has(account),
      instead: 'had no account of limits.accounts, so these never applied',
    },
    lanes.length > 0 && {
      code: 'HG_LANE_NEVER_SEEN',
      isMet: ({ lane }) => lane !== undefined,
      instead: 'had no lane, so limits.lanes never applied',
    },
    isLimited && {
      code: 'HG_NOTHING_LIMITED',
      isMet: (_, { windows, inFlight }) => windows.length > 0 || inFlight !== undefined,
      instead: 'met no window, so none was limited',
    },
  ];
  return expectations.filter((each) => each !== false);
}

/** Looks for signs that a limiter is used by mistake. At most 1,001 names of routes are stored. */
export class LimiterChecks {
  readonly #misuse: MisuseLog;
  readonly #limitedRoutes: readonly string[];
  readonly #latest: LatestLimiters;
  #unmet: readonly Expectation[];
  #hasNamedRoute = false;
  /** Names of the routes so far. Undefined after they were too many. */
  #routes: Set<string> | undefined = new Set();
  #decisions = 0;
  #rejections = 0;
  /** Whether nothing has read `accepted` of a rejection so far. False after the first {@link DECISIONS}. */
  areUnread = true;
  readonly createdAfter: number;

  constructor(misuse: MisuseLog, limits: NamedLimits, latest = latestLimiters) {
    this.#misuse = misuse;
    this.#limitedRoutes = limits.limitedRoutes ?? [];
    this.#unmet = expectationsOf(limits);
    this.#latest = latest;
    this.createdAfter = latest.begun;
  }

  get decisions(): number {
    return this.#decisions;
  }

  /**
   * Call it with every request that the limiter decides.
   * @param route its name, also if the request names none
   */
  decides(request: LimitRequest, route: string, windowSet: WindowSet): void {
    const decisions = ++this.#decisions;
    if (decisions <= DECISIONS) this.#lookAtFirst(request, windowSet, decisions);
    if (decisions <= DECISIONS || decisions % LOOKED_AT === 0) this.#look(request, route, windowSet, decisions);
  }

  /** Call it if requests in flight reject others, and none was ever released. */
  neverReleased(held: number): void {
    this.#misuse.warn(
      'HG_NEVER_RELEASED',
      `${held} requests are in flight, so others are rejected, and none was ever released: without a gate, call ` +
        'limiter.release(decision) when a request has ended, or write `using decision = …`.',
    );
  }

  /** Call it with each decision while they are unread. */
  decided(decided: MaybePromise<Decision>): void {
    if (!isPromise(decided)) this.#watch(decided);
    else
      decided.then(
        (decision) => this.#watch(decision),
        () => {},
      );
  }

  /** Call it with a request whose fields may be misspelt. Others are no mistake: a job can be passed as it is. */
  looksAtFields(request: LimitRequest): void {
    for (const name of Object.keys(request)) {
      if ((FIELDS as readonly string[]).includes(name)) continue;
      const lower = name.toLowerCase();
      const meant = FIELDS.find(
        (field) =>
          request[field] === undefined &&
          ([lower, lower.slice(0, -1), `${lower}${field.at(-1)}`].includes(field) ||
            (field === 'cost' && COST_ELSEWHERE.includes(lower))),
      );
      if (meant === undefined) continue;
      this.#misuse.warn('HG_UNKNOWN_FIELD', `Unknown field ${describe(name)}: is ${meant} meant?`, meant);
    }
  }

  /**
   * Call it with every limit and every lane of the limiter.
   * @param given as the user wrote them
   */
  listed(limits: readonly Limit[], lanes: Lanes, given: unknown): void {
    // Not in the text '5/900ms', where the unit is written.
    for (const [, ms] of (JSON.stringify(given) ?? '').matchAll(/"durationMs":(\d+)/g))
      if (isSeconds(Number(ms))) this.#misuse.warn('HG_SECONDS', `durationMs of a window is ${ms}: are seconds meant?`);
    for (const limit of limits) {
      limit.forEach((window, i) => {
        for (const { name, share } of lanes.values())
          if (window.max > 0 && shareOfMax(window.max, share) === 0) this.#warnOfLane(name, share, window);
        const longer = limit.find(({ unit }, at) => at > i && unit === window.unit);
        if (longer === undefined || longer.max > window.max) return;
        const reason = `${formatWindow(window)} has no effect beside ${formatWindow(longer)}.`;
        this.#misuse.warn('HG_WINDOW_WITHOUT_EFFECT', reason);
      });
    }
  }

  /** Call it with a block or a reset of one route. */
  targetsRoute(): void {
    if (this.#decisions === 0 || this.#hasNamedRoute) return;
    const reason = 'A block or reset names a route, but no request did so far';
    this.#misuse.warn('HG_ROUTE_OF_NO_REQUEST', `${reason}: leave it out, or name it in each request.`);
  }

  /** Call it with the time of a block, in milliseconds. */
  blocksFor(forMs: number): void {
    if (isSeconds(forMs)) this.#misuse.warn('HG_SECONDS', `forMs of a block is ${forMs}: are seconds meant?`);
  }

  /** Call it when the limiter is created. */
  created(store: LimitStore, limits: Limits | WindowSetSource, hasReceipts: boolean): void {
    const counters = store.identity ?? store;
    if (isMemoryStore(counters)) this.#inMemory(hasReceipts);
    const { place = '' } = countersOf(store);
    const others = limitsByCounters.get(counters) ?? limitsByPlace.get(place);
    limitsByCounters.set(counters, limits);
    if (place !== '' && limitsByPlace.size < MAX_PLACES) limitsByPlace.set(place, limits);
    if (others === undefined || areEqual(limits, others)) return;
    const reason = 'Two limiters with different limits share their counters';
    this.#misuse.warn('HG_SHARED_PREFIX', `${reason}: give each its own store, or its own Redis prefix.`);
  }

  /** Call it if a request names a provider without limits, although others are limited. */
  unknownProvider(provider: string): void {
    const reason = `limits.providers has no ${describe(provider)}, so the default limits apply`;
    this.#misuse.warn('HG_PROVIDER_WITHOUT_LIMITS', `${reason}: correct the name, or add it as {}.`);
  }

  /** Call it if the function `limits` changed a limit that an adjustment hides. */
  hidden(target: AdjustTarget): void {
    const reason = `The function \`limits\` changed a limit that adjust() hides, ${placeOfTarget(target)}`;
    this.#misuse.warn('HG_ADJUSTMENT_HIDES', `${reason}: reset the adjustment with 'recommended', if it is outdated.`);
  }

  #inMemory(hasReceipts: boolean): void {
    if (hasReceipts)
      this.#misuse.warn('HG_RECEIPTS_IN_MEMORY', 'Receipts of a memory store settle only in this process.');
    if (builtinModule<{ readonly isWorker: boolean }>('node:cluster')?.isWorker !== true) return;
    const reason = 'Each worker of the cluster counts in its own memory';
    this.#misuse.warn('HG_MEMORY_IN_CLUSTER', `${reason}: use a store in Redis or PostgreSQL.`);
  }

  #lookAtFirst(request: LimitRequest, windowSet: WindowSet, decisions: number): void {
    this.looksAtFields(request);
    const missing = MISSING.exec(request.account);
    if (missing !== null) this.#warnOfMissing(missing[1]);
    if (this.#unmet.length > 0) this.#unmet = this.#unmet.filter(({ isMet }) => !isMet(request, windowSet));
    if (decisions < DECISIONS) return;
    if (this.areUnread && this.#rejections >= IGNORED) this.#warnOfIgnored();
    this.areUnread = false;
    for (const { code, instead } of this.#unmet)
      this.#misuse.warn(code, `All of the first ${DECISIONS} requests ${instead}.`, instead);
  }

  #look({ account, route: named }: LimitRequest, route: string, windowSet: WindowSet, decisions: number): void {
    if (named !== undefined) this.#hasNamedRoute = true;
    if (decisions === 1 && this.#latest.begin(this, account, route)) this.#warnOfRequest();
    const routes = this.#routes;
    if (routes === undefined) return;
    // The names of routes do not matter if all routes are counted together.
    const isCounted = windowSet.routeWindows > 0 || windowSet.allMethodsScope === 'route';
    if (!isCounted && this.#limitedRoutes.length === 0) return;
    routes.add(route);
    if (decisions === DECISIONS) this.#findUnseen(routes);
    if (routes.size <= MAX_ROUTES) return;
    this.#routes = undefined;
    const reason = `Requests had over ${MAX_ROUTES} names of routes, such as ${listOf([route])}`;
    this.#misuse.warn('HG_TOO_MANY_ROUTES', `${reason}: name the operation, GET /users/:id, not the URL.`);
  }

  #findUnseen(routes: ReadonlySet<string>): void {
    const unseen = this.#limitedRoutes.filter((route) => !routes.has(route));
    if (unseen.length === 0) return;
    const reason = `The first ${DECISIONS} requests had none of these routes of \`limits\`: ${listOf(unseen)}`;
    this.#misuse.warn('HG_ROUTE_NEVER_SEEN', `${reason}. They had ${listOf([...routes])}.`);
  }

  #watch(decision: Decision): void {
    if (decision.accepted || !this.areUnread) return;
    this.#rejections++;
    const get = (): boolean => {
      this.areUnread = false;
      return false;
    };
    Object.defineProperty(decision, 'accepted', { get, enumerable: true, configurable: true });
  }

  #warnOfIgnored(): void {
    const reason = `Nothing read \`accepted\` of ${this.#rejections} rejections`;
    this.#misuse.warn('HG_DECISION_IGNORED', `${reason}: consume() resolves to a decision, and does not throw it.`);
  }

  #warnOfLane(name: string, share: number, window: LimitWindow): void {
    const reason = `${share} of ${formatWindow(window)}, rounded down, is 0: no request of the lane ${describe(name)} fits`;
    this.#misuse.warn('HG_LANE_WITHOUT_ROOM', `${reason}. Give the window a larger max, or the lane a larger share.`);
  }

  #warnOfMissing(missing = 'an object'): void {
    this.#misuse.warn('HG_UNDEFINED_IN_ACCOUNT', `An account contains ${missing}: is a field missing?`);
  }

  #warnOfRequest(): void {
    const reason = 'Limiters are created one by one for the same accounts, and decide one request each';
    this.#misuse.warn('HG_LIMITER_PER_REQUEST', `${reason}: create the limiter once, at the start.`);
  }
}

/** Functions and sources are equal only if they are the same one, because what they return is not known. */
function areEqual(limits: Limits | WindowSetSource, others: Limits | WindowSetSource): boolean {
  if ([limits, others].some((each) => typeof each === 'function' || isWindowSetSource(each))) return limits === others;
  return JSON.stringify(limits) === JSON.stringify(others);
}

function listOf(names: readonly string[]): string {
  const shown = names.slice(0, SHOWN_NAMES).map((name) => describe(name.split(/[?#]/, 1)[0]));
  return [...shown, ...(names.length > SHOWN_NAMES ? ['…'] : [])].join(', ');
}
