import { CostError, OptionError } from '../base/errors.ts';
import { isPromise, type MaybePromise } from '../base/maybe-promise.ts';
import { EVERY_ROUTE } from '../core/window-set.ts';
import type { Cooldown } from '../limits/cooldown.ts';
import type { LimitRequest } from '../limits/ports.ts';
import type { GateEntries } from './entries.ts';
import type { GateAnswer } from './gate.ts';
import type { GateChecks } from './gate-checks.ts';
import { badAccount } from './idempotent-request.ts';
import { type NoAccountRefusal, noAccountRefusal } from './no-account.ts';
import type { GatePassage } from './passage.ts';
import { callResolver, StageError } from './resolver.ts';
import type { RouteGateOptions } from './route-options.ts';

/** The facts about a request before its key is claimed, so that no resolver is called twice. */
export interface KnownRequest {
  readonly account: string | undefined;
  /** The limits do not apply, and the account is resolved only if there is a key. */
  readonly isAllowed: boolean;
}

const BAD_CACHED = 'the resolver must return true or false';

/** The last stage of a gate: the cache, and the limits. */
export class LimitStage<Request> {
  readonly #options: RouteGateOptions<Request>;
  readonly #entries: GateEntries<Request>;
  readonly #checks: GateChecks | undefined;
  readonly #cooldown: Cooldown | undefined;
  /** Undefined if a request without an account passes. */
  readonly #noAccount: NoAccountRefusal | undefined;

  constructor(
    options: RouteGateOptions<Request>,
    entries: GateEntries<Request>,
    checks: GateChecks | undefined,
    cooldown: Cooldown | undefined,
  ) {
    this.#cooldown = cooldown;
    this.#options = options;
    this.#entries = entries;
    this.#checks = checks;
    this.#noAccount = noAccountRefusal(options.onNoAccount);
  }

  /** Whether a request without an account passes. */
  get passesWithoutAccount(): boolean {
    return this.#noAccount === undefined;
  }

  /** The route's name; undefined if the request is exempt. */
  routeOf(request: Request): MaybePromise<string | undefined> {
    const { route } = this.#options;
    return route === undefined ? EVERY_ROUTE : callResolver('route', route, request);
  }

  /** @param known the values that an earlier stage resolved */
  enter(request: Request, requestId: string | undefined, known?: KnownRequest): MaybePromise<GateAnswer | GatePassage> {
    if (known?.isAllowed) return this.#entries.skip(requestId, 'allowed');
    const { account } = this.#options;
    try {
      const routeName = this.routeOf(request);
      // An exempt request needs no account, so `account` may fail for it.
      if (routeName === undefined) return this.#entries.skip(requestId, 'not_limited');
      const accountId = known === undefined ? callResolver('account', account, request) : known.account;
      // Most resolvers only read a header. Without a promise, the request need not wait for a turn of the event loop.
      if (!(isPromise(accountId) || isPromise(routeName)))
        return this.#enterSubject(request, requestId, accountId, routeName);
      return Promise.all([accountId, routeName])
        .then((subject) => this.#enterSubject(request, requestId, ...subject))
        .catch((error: unknown) => this.#entries.fail(request, requestId, error));
    } catch (error) {
      return this.#entries.fail(request, requestId, error);
    }
  }

  /**
   * Calls the other resolvers only for a request that they are meant for: with a route and an account.
   * @throws StageError
   */
  #enterSubject(
    request: Request,
    requestId: string | undefined,
    account: string | undefined,
    route: string | undefined,
  ): MaybePromise<GateAnswer | GatePassage> {
    if (route === undefined) return this.#entries.skip(requestId, 'not_limited');
    if (account === undefined) return this.enterWithoutAccount(request, requestId);
    if (typeof account !== 'string') return this.#entries.fail(request, requestId, badAccount(account));
    this.#checks?.resolved(account);
    const { provider, plan, groups, lane, cost, cached, limits } = this.#options;
    const isCached = cached === undefined ? false : callResolver('cached', cached, request);
    const providerName = provider === undefined ? undefined : callResolver('provider', provider, request);
    const planName = plan === undefined ? undefined : callResolver('plan', plan, request);
    const groupIds = groups === undefined ? undefined : callResolver('groups', groups, request);
    const laneName = lane === undefined ? undefined : callResolver('lane', lane, request);
    const units = cost === undefined ? 1 : callResolver('cost', cost, request);
    const isNamed = !(isPromise(providerName) || isPromise(planName) || isPromise(groupIds) || isPromise(laneName));
    // The limiter must not take the name of every route for a route.
    const named = this.#options.route === undefined ? undefined : route;
    if (isNamed && !(isPromise(units) || isPromise(isCached)))
      return this.#consume(request, requestId, isCached, {
        account,
        route: named,
        provider: providerName,
        plan: planName,
        groups: groupIds,
        lane: laneName,
        cost: units,
        limits,
      });
    return Promise.all([isCached, providerName, planName, groupIds, laneName, units]).then(
      ([isServed, ofProvider, ofPlan, inGroups, inLane, costs]) =>
        this.#consume(request, requestId, isServed, {
          account,
          route: named,
          provider: ofProvider,
          plan: ofPlan,
          groups: inGroups,
          lane: inLane,
          cost: costs,
          limits,
        }),
      (error: unknown) => this.#entries.fail(request, requestId, error),
    );
  }

  #consume(
    request: Request,
    requestId: string | undefined,
    isCached: boolean,
    limited: LimitRequest,
  ): MaybePromise<GateAnswer | GatePassage> {
    if (isCached === true) return this.#entries.skip(requestId, 'cached');
    // Any other truthy value would let a request past its limit by accident.
    if (isCached)
      return this.#entries.fail(
        request,
        requestId,
        new StageError('cached', new OptionError('cached', isCached, BAD_CACHED)),
      );
    const limiter = this.#cooldown ?? this.#options.limiter;
    try {
      // The limiter would take it for the default.
      if (limited.cost === undefined) throw new CostError(limited.cost);
      if (limiter.synchronous) return this.#entries.decided(request, requestId, limiter.consumeSync(limited));
    } catch (error) {
      return this.#entries.fail(request, requestId, new StageError('limits', error));
    }
    return limiter.consume(limited).then(
      (decision) => this.#entries.decided(request, requestId, decision),
      (error: unknown) => this.#entries.fail(request, requestId, new StageError('limits', error)),
    );
  }

  /** Refuses a request without an account, unless it passes. */
  enterWithoutAccount(request: Request, requestId: string | undefined): GateAnswer | GatePassage {
    this.#checks?.resolved(undefined);
    const refusal = this.#noAccount;
    if (refusal === undefined) return this.#entries.skip(requestId, 'not_limited', 'no_account');
    return this.#entries.refuse('no_account', refusal.status, refusal.type, refusal.detail, request, requestId);
  }
}
