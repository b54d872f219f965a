import type { Decision } from '../core/decision.ts';
import { type HeadgateErrorCode, isHeadgateError, OptionError } from '../core/errors.ts';
import { createLogger } from '../core/logger.ts';
import { after, isPromise } from '../core/maybe-promise.ts';
import { createMisuseLog } from '../core/misuse.ts';
import type { MaybePromise } from '../core/ports.ts';
import type { ErrorStatus, ErrorType } from '../http/error-types.ts';
import { MISSING_KEY_DETAIL } from '../http/idempotency-key.ts';
import { createProblem, problemReply, type Reply } from '../http/problem.ts';
import { type HeaderFields, type RateLimitFields, rateLimitFields } from '../http/rate-limit-fields.ts';
import type { Claim } from '../idempotency/claim.ts';
import { type Access, resolveAccess } from './access.ts';
import { problemOfBody } from './body-problem.ts';
import { GateEmitter, type RefusedEvent, type SkippedEvent } from './events.ts';
import type { Answer, Entry, Gate, Passage } from './gate.ts';
import { GateChecks } from './gate-checks.ts';
import { type AnswerProblem, IdempotencyStage } from './idempotency-stage.ts';
import {
  badAccount,
  checkIdempotentRequest,
  type FingerprintedRequest,
  isKeyFault,
  withFingerprint,
} from './idempotent-request.ts';
import { type NoAccountRefusal, noAccountRefusal } from './no-account.ts';
import { checkGateOptions, type GateOptions } from './options.ts';
import { ownReply } from './own-answer.ts';
import { GatePassage } from './passage.ts';
import { callResolver, StageError } from './resolver.ts';
import { type RouteGateOptions, type RouteOptions, withRoute } from './route-options.ts';

/** Errors which mean that the store could not decide. */
const STORE_CODES: readonly HeadgateErrorCode[] = [
  'store_full',
  'store_timeout',
  'store_unavailable',
  'result_unavailable',
];
/** Details of a 503, per stage that uses a store. */
const STORE_FAILURE_DETAILS = {
  limits: 'The rate limit could not be checked; nothing was charged.',
  idempotency: 'The idempotency key could not be claimed; nothing was sent. Retry with the same key.',
} as const;
const RESULT_UNAVAILABLE_DETAIL =
  'The original request has completed, but its stored response cannot be read now. Retry with the same key.';
const BAD_CACHED = 'the resolver must return true or false';
const NO_HEADERS: HeaderFields = /* @__PURE__ */ Object.freeze({});
const BYPASSED: HeaderFields = /* @__PURE__ */ Object.freeze({ 'idempotency-status': 'bypassed' });

/** A provider that answers 429 has not executed the request (I6). */
function isNotRejection(status: number): boolean {
  return status !== 429;
}

/**
 * Creates the gate that adapters mount.
 * @example
 * ```ts
 * const gate = createGate<IncomingMessage>({
 *   limiter,
 *   account: (request) => request.headers['x-account'] as string | undefined,
 *   route: (request) => `${request.method} /api/v1/emails`,
 * });
 * ```
 * @throws OptionError
 */
export function createGate<Request>(options: GateOptions<Request>): Gate<Request> {
  checkGateOptions(options);
  const misuse = createMisuseLog(options);
  return new StagedGate(options, misuse && new GateChecks(misuse));
}

/** Runs its stages in order: access, account, idempotency, cache, limits. */
class StagedGate<Request> implements Gate<Request> {
  readonly #options: RouteGateOptions<Request>;
  readonly #headerStyle: RateLimitFields;
  readonly #events: GateEmitter;
  readonly #idempotency: IdempotencyStage | undefined;
  readonly #checks: GateChecks | undefined;
  /** Undefined if a request without an account passes. */
  readonly #noAccount: NoAccountRefusal | undefined;

  constructor(options: RouteGateOptions<Request>, checks: GateChecks | undefined) {
    this.#options = options;
    this.#checks = checks;
    this.#headerStyle = options.headers ?? 'x-ratelimit';
    this.#events = new GateEmitter(options.onEvent, createLogger(options.logger));
    this.#noAccount = noAccountRefusal(options.onNoAccount);
    const { idempotency, isOutcome = isNotRejection, keepsField } = options;
    this.#idempotency = idempotency && new IdempotencyStage({ idempotency, isOutcome, keepsField });
  }

  enter(request: Request, requestId?: string, outer?: Passage): MaybePromise<Entry> {
    const entry = this.#enter(request, requestId, outer);
    if (!(outer instanceof GatePassage)) return entry;
    return after(entry, (entered) => {
      this.#checks?.decidedBehind(outer, entered.decision, this.#options.limiter);
      if (entered.kind === 'proceed') return entered.behind(outer);
      if (entered.decision !== undefined) outer.hide();
      return entered;
    });
  }

  with(options: RouteOptions<Request>): Gate<Request> {
    const { limits, ...others } = withRoute(this.#options, options);
    checkGateOptions(others);
    return new StagedGate({ ...others, limits }, this.#checks);
  }

  #enter(
    request: Request,
    requestId: string | undefined,
    outer: Passage | undefined,
  ): MaybePromise<Answer | GatePassage> {
    const { deny, allow } = this.#options;
    if (deny === undefined && allow === undefined) return this.#enterWithAccess('limited', request, requestId, outer);
    return this.#guard(request, requestId, () =>
      after(resolveAccess(this.#options, request), (access) =>
        this.#enterWithAccess(access, request, requestId, outer),
      ),
    );
  }

  /** The stages after access. Without idempotency these are cache and limits. */
  #enterWithAccess(
    access: Access,
    request: Request,
    requestId: string | undefined,
    outer: Passage | undefined,
  ): MaybePromise<Answer | GatePassage> {
    if (typeof access === 'object')
      return this.#refuse('denied', 403, 'errors/resource_access_restricted', access.deniedFor, request, requestId);
    const isAllowed = access === 'allowed';
    const { idempotent, account } = this.#options;
    const stage = this.#idempotency;
    // If the outer gate holds the claim on this key, a second claim would wait for it: the request would wait for itself.
    if (stage === undefined || idempotent === undefined || outer?.isRecorded)
      return isAllowed ? this.#skip(requestId, 'allowed') : this.#enterLimits(request, requestId);
    return this.#guard(request, requestId, () =>
      // Resolved before the claim: the account is part of the fingerprint (I2), and its resolver may fail.
      after(isAllowed ? undefined : callResolver('account', account, request), (resolved) => {
        const known = { account: resolved, isAllowed };
        const enter = () => this.#enterIdempotency(stage, idempotent, request, requestId, known);
        if (resolved !== undefined || isAllowed || this.#noAccount === undefined) return enter();
        // Nothing is read of a request that is refused, and no key is claimed for it.
        return after(callResolver('route', this.#options.route, request), (route) =>
          route === undefined ? enter() : this.#enterWithoutAccount(request, requestId),
        );
      }),
    );
  }

  #enterIdempotency(
    stage: IdempotencyStage,
    idempotent: NonNullable<GateOptions<Request>['idempotent']>,
    request: Request,
    requestId: string | undefined,
    known: Known,
  ): MaybePromise<Answer | GatePassage> {
    const resolving = callResolver('idempotent', idempotent, request);
    if (resolving === undefined) return this.#enterWithoutKey(request, requestId, known);
    const id = this.#idFor(requestId, true);
    return Promise.resolve(resolving)
      .then(async (resolved) => {
        if (resolved === undefined) return this.#enterWithoutKey(request, id, known);
        if (isKeyFault(resolved)) return this.#answer(422, 'errors/unprocessable_entity', resolved.detail, request, id);
        const account = known.isAllowed ? await callResolver('account', this.#options.account, request) : known.account;
        const keyed = await withFingerprint(checkIdempotentRequest(resolved), account);
        return this.#enterWithKey(stage, keyed, request, id, known);
      })
      .catch((error: unknown) => this.#fail(request, id, error));
  }

  #enterWithoutKey(request: Request, requestId: string | undefined, known: Known): MaybePromise<Answer | GatePassage> {
    if (this.#options.requireKey !== true) return this.#enterLimits(request, requestId, known);
    const id = this.#idFor(requestId, true);
    return this.#answer(400, 'errors/missing_idempotency_key', MISSING_KEY_DETAIL, request, id);
  }

  /** Claims the key, then runs the later stages. If one rejects the request, the key is released before the answer. */
  async #enterWithKey(
    stage: IdempotencyStage,
    keyed: FingerprintedRequest,
    request: Request,
    requestId: string,
    known: Known,
  ): Promise<Answer | GatePassage> {
    const problem = this.#problemFor(request, requestId);
    const opened = await stage.open(keyed).catch((error: unknown) => {
      throw new StageError('idempotent', error);
    });
    if (opened.kind === 'unavailable')
      return this.#fail(request, requestId, new StageError('idempotency', opened.error));
    const outcome = opened.kind === 'replay' ? 'replayed' : opened.kind === 'refused' ? opened.reason : opened.kind;
    this.#events.emit({ type: 'idempotency', requestId, outcome });
    switch (opened.kind) {
      case 'replay':
        return { kind: 'answer', reply: stage.replay(opened.result, problem), replayed: true };
      case 'refused':
        return { kind: 'answer', reply: stage.refuse(opened, keyed, problem) };
      case 'bypassed': {
        const entry = await this.#enterLimits(request, requestId, known);
        return entry.kind === 'answer' ? entry : entry.withMarks(BYPASSED);
      }
      case 'claimed':
        try {
          const entry = await this.#enterLimits(request, requestId, known);
          return await this.#dispatch(stage, opened.claim, keyed, problem, entry, request, requestId);
        } catch (error) {
          await opened.claim.abandon();
          throw error;
        }
    }
  }

  /** Records the dispatch if the later stages let the request through, and releases the key if they rejected it. */
  async #dispatch(
    stage: IdempotencyStage,
    claim: Claim,
    keyed: FingerprintedRequest,
    problem: AnswerProblem,
    entry: Answer | GatePassage,
    request: Request,
    requestId: string,
  ): Promise<Answer | GatePassage> {
    if (entry.kind === 'answer') {
      const instead = await stage.release(claim, problem);
      return instead === undefined ? entry : { kind: 'answer', reply: instead };
    }
    const dispatch = await claim.dispatch();
    if (dispatch.kind === 'ok')
      return entry.withClaim(
        stage.recording(claim, keyed, problem),
        () => stage.release(claim, problem),
        (error) => this.#fail(request, requestId, new StageError('idempotency', error)).reply,
      );
    await entry.abandon();
    switch (dispatch.kind) {
      case 'settled':
        return { kind: 'answer', reply: stage.replay(dispatch.result, problem), replayed: true };
      case 'lost':
        return { kind: 'answer', reply: stage.refuse({ kind: 'refused', reason: 'lost' }, keyed, problem) };
      case 'unavailable':
        return this.#fail(request, requestId, new StageError('idempotency', dispatch.error));
    }
  }

  /** The stages after idempotency: cache and limits. */
  #enterLimits(request: Request, requestId: string | undefined, known?: Known): MaybePromise<Answer | GatePassage> {
    if (known?.isAllowed) return this.#skip(requestId, 'allowed');
    const { account, route } = this.#options;
    try {
      const routeName = callResolver('route', route, request);
      // An exempt request needs no account, so `account` may fail for it.
      if (routeName === undefined) return this.#skip(requestId, 'not_limited');
      const accountId = known === undefined ? callResolver('account', account, request) : known.account;
      // Most resolvers only read a header. Without a promise, the request need not wait for a turn of the event loop.
      if (!(isPromise(accountId) || isPromise(routeName)))
        return this.#enterSubject(request, requestId, accountId, routeName);
      return Promise.all([accountId, routeName])
        .then((subject) => this.#enterSubject(request, requestId, ...subject))
        .catch((error: unknown) => this.#fail(request, requestId, error));
    } catch (error) {
      return this.#fail(request, requestId, error);
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
  ): MaybePromise<Answer | GatePassage> {
    if (route === undefined) return this.#skip(requestId, 'not_limited');
    if (account === undefined) return this.#enterWithoutAccount(request, requestId);
    if (typeof account !== 'string') return this.#fail(request, requestId, badAccount(account));
    this.#checks?.resolved(account);
    const { provider, plan, cost, cached } = this.#options;
    const isCached = cached === undefined ? false : callResolver('cached', cached, request);
    const providerName = provider === undefined ? undefined : callResolver('provider', provider, request);
    const planName = plan === undefined ? undefined : callResolver('plan', plan, request);
    const units = cost === undefined ? 1 : callResolver('cost', cost, request);
    if (!(isPromise(isCached) || isPromise(providerName) || isPromise(planName) || isPromise(units)))
      return this.#consume(request, requestId, account, route, isCached, providerName, planName, units);
    return Promise.all([isCached, providerName, planName, units]).then(
      (values) => this.#consume(request, requestId, account, route, ...values),
      (error: unknown) => this.#fail(request, requestId, error),
    );
  }

  #consume(
    request: Request,
    requestId: string | undefined,
    account: string,
    route: string,
    isCached: boolean,
    provider: string | undefined,
    plan: string | undefined,
    cost: number,
  ): MaybePromise<Answer | GatePassage> {
    if (isCached === true) return this.#skip(requestId, 'cached');
    // Any other truthy value would let a request past its limit by accident.
    if (isCached)
      return this.#fail(request, requestId, new StageError('cached', new OptionError('cached', isCached, BAD_CACHED)));
    const { limiter, limits } = this.#options;
    const limited = { account, route, provider, plan, cost, limits };
    try {
      if (limiter.synchronous) return this.#enterDecided(request, requestId, limiter.consumeSync(limited));
    } catch (error) {
      return this.#fail(request, requestId, new StageError('limits', error));
    }
    return limiter.consume(limited).then(
      (decision) => this.#enterDecided(request, requestId, decision),
      (error: unknown) => this.#fail(request, requestId, new StageError('limits', error)),
    );
  }

  #enterDecided(request: Request, requestId: string | undefined, decision: Decision): Answer | GatePassage {
    requestId = this.#idFor(requestId, !decision.accepted);
    if (this.#events.hasListener) this.#events.emit({ type: 'decision', requestId, decision });
    const headers = rateLimitFields(decision, this.#headerStyle);
    if (decision.accepted) return this.#createPassage(requestId, decision, headers);
    const detail = rejectionDetail(decision, headers);
    return this.#answer(429, 'api/too_many_requests', detail, request, requestId, headers, decision);
  }

  #enterWithoutAccount(request: Request, requestId: string | undefined): Answer | GatePassage {
    this.#checks?.resolved(undefined);
    const refusal = this.#noAccount;
    if (refusal === undefined) return this.#skip(requestId, 'not_limited');
    return this.#refuse('no_account', refusal.status, refusal.type, refusal.detail, request, requestId);
  }

  /** Answers a request that may not pass, whatever its limits are. */
  #refuse<Status extends 401 | 403>(
    reason: RefusedEvent['reason'],
    status: Status,
    type: ErrorType<Status>,
    detail: string,
    request: Request,
    requestId: string | undefined,
  ): Answer {
    const id = this.#idFor(requestId, true);
    this.#events.emit({ type: 'refused', requestId: id, reason, status });
    return this.#answer(status, type, detail, request, id);
  }

  #skip(requestId: string | undefined, reason: SkippedEvent['reason']): GatePassage {
    requestId = this.#idFor(requestId);
    if (this.#events.hasListener) this.#events.emit({ type: 'skipped', requestId, reason });
    return this.#createPassage(requestId, undefined, NO_HEADERS);
  }

  /** The given id, or a new one if an answer or an event needs it: creating an id costs more than the decision. */
  #idFor(requestId: string | undefined, isNeeded = this.#events.hasListener): string {
    return requestId ?? (isNeeded || this.#events.hasListener ? crypto.randomUUID() : '');
  }

  #createPassage(requestId: string, decision: Decision | undefined, headers: HeaderFields): GatePassage {
    return new GatePassage(decision, headers, requestId, this.#options, this.#events);
  }

  /** Runs stages. What they throw becomes the answer. */
  #guard(
    request: Request,
    requestId: string | undefined,
    run: () => MaybePromise<Answer | GatePassage>,
  ): MaybePromise<Answer | GatePassage> {
    try {
      const entry = run();
      return isPromise(entry) ? entry.catch((error: unknown) => this.#fail(request, requestId, error)) : entry;
    } catch (error) {
      return this.#fail(request, requestId, error);
    }
  }

  #fail(request: Request, requestId: string | undefined, cause: unknown): Answer {
    const { stage, error } = cause instanceof StageError ? cause : new StageError('limits', cause);
    requestId = this.#idFor(requestId, true);
    // Any resolver may read the body.
    const reply = problemOfBody(error, this.#problemFor(request, requestId));
    if (reply !== undefined) return { kind: 'answer', reply };
    // Only an error of a store means that the service is unavailable. Any other error is a fault of the program.
    const usesStore = stage === 'limits' || stage === 'idempotency';
    this.#events.emitFailure({ requestId, stage, error });
    if (usesStore && (!isHeadgateError(error) || STORE_CODES.includes(error.code))) {
      const detail = isHeadgateError(error, 'result_unavailable')
        ? RESULT_UNAVAILABLE_DETAIL
        : STORE_FAILURE_DETAILS[stage];
      return this.#answer(503, 'errors/service_unavailable', detail, request, requestId);
    }
    const detail = 'Internal error. The server log has details under this req_id.';
    return this.#answer(500, 'errors/unexpected_error', detail, request, requestId);
  }

  #problemFor(request: Request, requestId: string): AnswerProblem {
    return (status, type, detail, headers) => this.#answer(status, type, detail, request, requestId, headers).reply;
  }

  #answer<Status extends ErrorStatus>(
    status: Status,
    type: ErrorType<Status>,
    detail: string,
    request: Request,
    requestId: string,
    headers: Reply['headers'] = NO_HEADERS,
    decision?: Decision,
  ): Answer {
    const { answer, problemMediaType } = this.#options;
    const problem = createProblem(status, type, detail, requestId);
    const reply = problemReply(problem, headers, problemMediaType);
    if (answer === undefined) return { kind: 'answer', reply, decision };
    try {
      const own = ownReply(answer, problem, reply, { request, requestId, decision });
      return { kind: 'answer', reply: own ?? reply, decision };
    } catch (error) {
      this.#events.emitFailure({ requestId, stage: 'answer', error });
      return { kind: 'answer', reply, decision };
    }
  }
}

function rejectionDetail({ impossible, blocked, shown }: Decision, headers: HeaderFields): string {
  if (impossible) return 'The request costs more than this limit ever allows; waiting does not help.';
  const retry = 'retry-after' in headers ? `in ${headers['retry-after']} s` : 'later';
  if (blocked === undefined) {
    const state = (shown?.remaining ?? 0) > 0 ? 'has not enough left for this request' : 'is used up';
    return `The rate limit ${state}; retry ${retry}.`;
  }
  const detail = `Requests like this one are blocked for this account; retry ${retry}.`;
  return blocked.reason === undefined ? detail : `${detail} Reason: ${blocked.reason}`;
}

/** What is known of a request before its key is claimed, so that no resolver is called twice. */
interface Known {
  readonly account: string | undefined;
  /** The limits do not apply, and the account is resolved only if there is a key. */
  readonly isAllowed: boolean;
}
