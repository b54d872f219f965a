import type { Decision } from '../core/decision.ts';
import { type HeadgateErrorCode, isHeadgateError, OptionError } from '../core/errors.ts';
import type { MaybePromise } from '../core/ports.ts';
import type { ErrorStatus, ErrorType } from '../http/error-types.ts';
import { createProblem, problemReply, type Reply } from '../http/problem.ts';
import { type HeaderFields, type RateLimitFields, rateLimitFields } from '../http/rate-limit-fields.ts';
import type { Claim } from '../idempotency/idempotency.ts';
import { problemOfBody } from './body-problem.ts';
import { Events, type FailureEvent } from './events.ts';
import type { Answer, Entry, Gate, Passage } from './gate.ts';
import { type AnswerProblem, IdempotencyStage, type PrintedRequest } from './idempotency-stage.ts';
import { checkIdempotentRequest, isKeyFault, printed } from './idempotent-request.ts';
import { checkGateOptions, type GateOptions } from './options.ts';
import { GatePassage } from './passage.ts';
import { ask, isPromise, StageError } from './resolve.ts';
import { type RouteOptions, withRoute } from './route-options.ts';

/** Errors of headgate's own that mean: the store could not decide. */
const STORE_CODES: readonly HeadgateErrorCode[] = ['store_full', 'store_timeout', 'store_unavailable'];
const NO_BOOLEAN = 'the resolver gives true or false';
const NO_HEADERS: HeaderFields = /* @__PURE__ */ Object.freeze({});
const BYPASSED: HeaderFields = /* @__PURE__ */ Object.freeze({ 'idempotency-status': 'bypassed' });

/** A provider that says 429 has not done it (I6). */
function isNoRejection(status: number): boolean {
  return status !== 429;
}

/**
 * Makes the gate that adapters mount.
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
  return new StagedGate(options);
}

class StagedGate<Request> implements Gate<Request> {
  readonly #options: GateOptions<Request>;
  readonly #fields: RateLimitFields;
  readonly #events: Events;
  readonly #idempotency: IdempotencyStage | undefined;

  constructor(options: GateOptions<Request>) {
    this.#options = options;
    this.#fields = options.headers ?? 'x-ratelimit';
    this.#events = new Events(options.onEvent);
    const { idempotency, isOutcome = isNoRejection, keepsField } = options;
    this.#idempotency = idempotency && new IdempotencyStage({ idempotency, isOutcome, keepsField });
  }

  enter(request: Request, requestId?: string, outer?: Passage): MaybePromise<Entry> {
    const { idempotent } = this.#options;
    const stage = this.#idempotency;
    if (stage === undefined || idempotent === undefined) return this.#pace(request, requestId);
    // It would wait for itself.
    if (outer?.recording !== undefined) return this.#pace(request, requestId);
    try {
      const keyed = ask('idempotent', idempotent, request);
      if (keyed === undefined) return this.#pace(request, requestId);
      const id = this.#idFor(requestId, true);
      return Promise.resolve(keyed)
        .then(async (found) => {
          if (found === undefined) return this.#pace(request, id);
          if (isKeyFault(found)) return this.#answer(422, 'errors/unprocessable_entity', found.detail, id);
          const given = checkIdempotentRequest(found);
          // Asked before the claim: an account is part of what makes two requests the same (I2), and may itself refuse.
          const account = await ask('account', this.#options.account, request);
          return this.#claim(stage, await printed(given, account), request, id, { account });
        })
        .catch((error: unknown) => this.#failed(id, error));
    } catch (error) {
      return this.#failed(requestId, error);
    }
  }

  with(options: RouteOptions<Request>): Gate<Request> {
    return createGate(withRoute(this.#options, options));
  }

  /** Claims the key, then takes the stages behind it, whose "no" gives it back before it is answered. */
  async #claim(
    stage: IdempotencyStage,
    keyed: PrintedRequest,
    request: Request,
    requestId: string,
    asked: Asked,
  ): Promise<Entry> {
    const problem = this.#problems(requestId);
    const opened = await stage.open(keyed).catch((error: unknown) => {
      throw new StageError('idempotent', error);
    });
    const tell = (outcome: 'claimed' | 'bypassed' | 'replayed'): void =>
      this.#events.emit({ type: 'idempotency', requestId, outcome });
    switch (opened.kind) {
      case 'replay':
        tell('replayed');
        return { kind: 'answer', reply: stage.replay(opened.result, problem), replayed: true };
      case 'refused':
        this.#events.emit({ type: 'idempotency', requestId, outcome: opened.reason });
        return { kind: 'answer', reply: stage.refuse(opened, keyed, problem) };
      case 'unavailable':
        return this.#failed(requestId, new StageError('idempotency', opened.error));
      case 'bypassed': {
        tell('bypassed');
        const entry = await this.#pace(request, requestId, asked);
        return entry.kind === 'answer' ? entry : entry.marked(BYPASSED);
      }
      case 'claimed':
        tell('claimed');
        try {
          const entry = await this.#pace(request, requestId, asked);
          return await this.#go(stage, opened.claim, keyed, problem, entry, requestId);
        } catch (error) {
          await opened.claim.abandon();
          throw error;
        }
    }
  }

  async #go(
    stage: IdempotencyStage,
    claim: Claim,
    keyed: PrintedRequest,
    problem: AnswerProblem,
    entry: Answer | GatePassage,
    requestId: string,
  ): Promise<Entry> {
    const instead = (reply: Reply | undefined): Answer | undefined => reply && { kind: 'answer', reply };
    if (entry.kind === 'answer') return instead(await stage.release(claim, problem)) ?? entry;
    const dispatch = await claim.dispatch();
    if (dispatch.kind === 'ok')
      return entry.holding(stage.recording(claim, keyed, problem), () => stage.release(claim, problem));
    await entry.abandon();
    switch (dispatch.kind) {
      case 'settled':
        return { kind: 'answer', reply: stage.replay(dispatch.result, problem), replayed: true };
      case 'lost':
        return { kind: 'answer', reply: stage.refuse({ kind: 'refused', reason: 'lost' }, keyed, problem) };
      case 'unavailable':
        return this.#failed(requestId, new StageError('idempotency', dispatch.error));
    }
  }

  /** The stages behind idempotency: cache and limits. */
  #pace(request: Request, requestId: string | undefined, asked?: Asked): MaybePromise<Answer | GatePassage> {
    const { account, route, provider, cost, cached } = this.#options;
    try {
      const accountId = asked === undefined ? ask('account', account, request) : asked.account;
      const routeName = ask('route', route, request);
      const isCached = cached === undefined ? false : ask('cached', cached, request);
      const providerName = provider === undefined ? undefined : ask('provider', provider, request);
      const units = cost === undefined ? 1 : ask('cost', cost, request);
      // Most resolvers only read a header: without a promise there is no turn of the event loop to wait for.
      if (
        !(
          isPromise(accountId) ||
          isPromise(routeName) ||
          isPromise(isCached) ||
          isPromise(providerName) ||
          isPromise(units)
        )
      ) {
        return this.#limit(requestId, isCached, accountId, routeName, providerName, units);
      }
      return Promise.all([isCached, accountId, routeName, providerName, units]).then(
        (values) => this.#limit(requestId, ...values),
        (error: unknown) => this.#failed(requestId, error),
      );
    } catch (error) {
      return this.#failed(requestId, error);
    }
  }

  #limit(
    requestId: string | undefined,
    isCached: boolean,
    account: string | undefined,
    route: string | undefined,
    provider: string | undefined,
    cost: number,
  ): MaybePromise<Answer | GatePassage> {
    if (account === undefined || route === undefined) return this.#skip(requestId, 'not_limited');
    if (isCached === true) return this.#skip(requestId, 'cached');
    // Anything else that is true to JavaScript would let a request past its limit by accident.
    if (isCached)
      return this.#failed(requestId, new StageError('cached', new OptionError('cached', isCached, NO_BOOLEAN)));
    const { limiter } = this.#options;
    const request = { account, route, provider, cost };
    try {
      if (limiter.synchronous) return this.#decided(requestId, limiter.consumeSync(request));
    } catch (error) {
      return this.#failed(requestId, new StageError('limits', error));
    }
    return limiter.consume(request).then(
      (decision) => this.#decided(requestId, decision),
      (error: unknown) => this.#failed(requestId, new StageError('limits', error)),
    );
  }

  #decided(requestId: string | undefined, decision: Decision): Answer | GatePassage {
    requestId = this.#idFor(requestId, !decision.accepted);
    if (this.#events.heard) this.#events.emit({ type: 'decision', requestId, decision });
    const headers = rateLimitFields(decision, this.#fields);
    if (decision.accepted) return this.#pass(requestId, decision, headers);
    const detail = decision.impossible
      ? 'The request costs more than this limit ever allows; waiting does not help.'
      : `The rate limit of this account is used up; retry ${'retry-after' in headers ? `in ${headers['retry-after']} s` : 'later'}.`;
    return this.#answer(429, 'api/too_many_requests', detail, requestId, headers);
  }

  #skip(requestId: string | undefined, reason: 'not_limited' | 'cached'): GatePassage {
    requestId = this.#idFor(requestId);
    if (this.#events.heard) this.#events.emit({ type: 'skipped', requestId, reason });
    return this.#pass(requestId, undefined, NO_HEADERS);
  }

  /** An id where one was given or is needed; making one costs more than the decision. */
  #idFor(requestId: string | undefined, needed = this.#events.heard): string {
    return requestId ?? (needed || this.#events.heard ? crypto.randomUUID() : '');
  }

  #pass(requestId: string, decision: Decision | undefined, headers: HeaderFields): GatePassage {
    return new GatePassage(decision, headers, requestId, this.#options.limiter, this.#events);
  }

  #failed(requestId: string | undefined, cause: unknown): Answer {
    const { stage, error } = cause instanceof StageError ? cause : new StageError('limits', cause);
    requestId = this.#idFor(requestId, true);
    // Both may read the body.
    const reply =
      stage === 'idempotent' || stage === 'account' ? problemOfBody(error, this.#problems(requestId)) : undefined;
    if (reply !== undefined) return { kind: 'answer', reply };
    const failure: FailureEvent = { type: 'failure', requestId, stage, error };
    this.#events.emit(failure);
    // A store that cannot decide is not there; everything else is a fault of the program's.
    const asksStore = stage === 'limits' || stage === 'idempotency';
    const storeIsAway = asksStore && (!isHeadgateError(error) || STORE_CODES.includes(error.code));
    if (storeIsAway) return this.#answer(503, 'errors/service_unavailable', AWAY[stage], requestId);
    this.#events.failedUnheard(failure);
    const detail = 'Something of ours broke; the log has more under this req_id.';
    return this.#answer(500, 'errors/unexpected_error', detail, requestId);
  }

  #problems(requestId: string): AnswerProblem {
    return (status, type, detail, headers) => this.#answer(status, type, detail, requestId, headers).reply;
  }

  #answer<Status extends ErrorStatus>(
    status: Status,
    type: ErrorType<Status>,
    detail: string,
    requestId: string,
    headers: Reply['headers'] = NO_HEADERS,
  ): Answer {
    const problem = createProblem(status, type, detail, requestId);
    return { kind: 'answer', reply: problemReply(problem, headers, this.#options.problemMediaType) };
  }
}

/** What a store that is away means at each stage that asks one. */
const AWAY = {
  limits: 'The rate limit could not be checked; nothing was charged.',
  idempotency: 'The idempotency key could not be claimed; nothing was sent. Retry with the same key.',
} as const;

/** What was found out in front of a claim, so that it is not asked again behind it. */
interface Asked {
  readonly account: string | undefined;
}
