import { describe } from '../base/errors.ts';
import type { AdjustTarget } from '../core/adjustment.ts';
import { formatWindow, type Limit } from '../core/limit.ts';
import type { MisuseLog } from '../core/misuse.ts';
import type { LimitStore } from '../core/ports.ts';
import { LatestLimiters } from './latest-limiters.ts';
import type { LimitRequest } from './ports.ts';
import { isWindowSetSource, type LayerField, type Limits, type WindowSetSource } from './window-set-source.ts';
import { placeOfTarget } from './window-sets.ts';

/** Decisions after which every route with limits of its own should have been seen. */
const DECISIONS = 1_000;
/** Most different names of routes. An API offers hundreds of operations at most. */
const MAX_ROUTES = 1_000;
/** After the first {@link DECISIONS}, only every 64th decision is looked at, so that the others cost nothing. */
const LOOKED_AT = 64;
/** Most names that a warning shows. */
const SHOWN_NAMES = 5;
/** The fields of a request. */
const FIELDS: readonly (keyof LimitRequest)[] = ['account', 'route', 'provider', 'plan', 'limits', 'cost'];

/** The limits of the limiter that uses the counters, by the identity of the counters. */
const limitsByCounters = /* @__PURE__ */ new WeakMap<object, Limits | WindowSetSource>();

/** Those of this process. */
const latestLimiters = /* @__PURE__ */ new LatestLimiters();

/** Looks for signs that a limiter is used by mistake. At most 1,001 names of routes are stored. */
export class LimiterChecks {
  readonly #misuse: MisuseLog;
  readonly #limitedRoutes: readonly string[];
  readonly #latest: LatestLimiters;
  /** The fields that select a layer of the limits, and that no request had so far. */
  readonly #unseenFields: Set<LayerField>;
  /** Names of the routes so far. Undefined after they were too many. */
  #routes: Set<string> | undefined = new Set();
  #decisions = 0;
  readonly createdAfter: number;

  constructor(
    misuse: MisuseLog,
    { limitedRoutes = [], layerFields }: Pick<WindowSetSource, 'limitedRoutes' | 'layerFields'>,
    latest = latestLimiters,
  ) {
    this.#misuse = misuse;
    this.#limitedRoutes = limitedRoutes;
    this.#unseenFields = new Set(layerFields);
    this.#latest = latest;
    this.createdAfter = latest.begun;
  }

  get decisions(): number {
    return this.#decisions;
  }

  /**
   * Call it with every request that the limiter decides.
   * @param route its name, also if the request names none
   * @param isCounted whether a window counts the route separately
   */
  decides(request: LimitRequest, route: string, isCounted = true): void {
    const decisions = ++this.#decisions;
    if (decisions <= DECISIONS) this.#lookAtFirst(request, decisions);
    if (decisions <= DECISIONS || decisions % LOOKED_AT === 0) this.#look(request.account, route, isCounted, decisions);
  }

  /** Call it with a request whose fields may be misspelt. Others are no mistake: a job can be passed as it is. */
  looksAtFields(request: LimitRequest): void {
    for (const name of Object.keys(request)) {
      if ((FIELDS as readonly string[]).includes(name)) continue;
      const lower = name.toLowerCase();
      const meant = FIELDS.find(
        (field) =>
          request[field] === undefined && [lower, lower.slice(0, -1), `${lower}${field.at(-1)}`].includes(field),
      );
      if (meant === undefined) continue;
      this.#misuse.warn('HG_UNKNOWN_FIELD', `Unknown field ${describe(name)}: is ${meant} meant?`, meant);
    }
  }

  /** Call it with every limit of the limiter. */
  listed(limits: readonly Limit[]): void {
    for (const limit of limits) {
      limit.forEach((window, i) => {
        const longer = limit[i + 1];
        if (longer === undefined || longer.max > window.max) return;
        const reason = `${formatWindow(window)} has no effect beside ${formatWindow(longer)}.`;
        this.#misuse.warn('HG_WINDOW_WITHOUT_EFFECT', reason);
      });
    }
  }

  /** Call it if a limiter with receipts counts in this process alone. */
  receiptsInMemory(): void {
    const reason = 'Receipts of a memory store settle only in this process.';
    this.#misuse.warn('HG_RECEIPTS_IN_MEMORY', reason);
  }

  /** Call it when the limiter is created. */
  created(store: LimitStore, limits: Limits | WindowSetSource): void {
    const counters = store.identity ?? store;
    const others = limitsByCounters.get(counters);
    limitsByCounters.set(counters, limits);
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

  #lookAtFirst(request: LimitRequest, decisions: number): void {
    this.looksAtFields(request);
    for (const field of this.#unseenFields) {
      if (request[field] !== undefined) this.#unseenFields.delete(field);
      else if (decisions === DECISIONS) {
        const reason = `The first ${DECISIONS} requests had no ${field}, so limits.${field}s never applied.`;
        this.#misuse.warn(`HG_${field.toUpperCase() as Uppercase<LayerField>}_NEVER_SEEN`, reason);
      }
    }
  }

  #look(account: string, route: string, isCounted: boolean, decisions: number): void {
    if (decisions === 1 && this.#latest.begin(this, account, route)) this.#warnOfRequest();
    const routes = this.#routes;
    if (routes === undefined) return;
    // The names of routes do not matter if all routes are counted together.
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

  #warnOfRequest(): void {
    const reason = 'Ten limiters in a row decided one request each, of one account and route';
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
