import type { Decision } from '../core/decision.ts';
import { type HeadgateErrorCode, isHeadgateError, OptionError } from '../core/errors.ts';
import { createLogger } from '../core/logger.ts';
import { after, isPromise } from '../core/maybe-promise.ts';
import type { MaybePromise } from '../core/ports.ts';
import type { ErrorStatus, ErrorType } from '../http/error-types.ts';
import { createProblem, problemReply, type Reply } from '../http/problem.ts';
import { type HeaderFields, type RateLimitFields, rateLimitFields } from '../http/rate-limit-fields.ts';
import type { Claim } from '../idempotency/claim.ts';
import { problemOfBody } from './body-problem.ts';
import { GateEmitter } from './events.ts';
import type { Answer, Entry, Gate, Passage } from './gate.ts';
import { type AnswerProblem, IdempotencyStage } from './idempotency-stage.ts';
import {
  checkIdempotentRequest,
  type FingerprintedRequest,
  isKeyFault,
  withFingerprint,
} from './idempotent-request.ts';
import { checkGateOptions, type GateOptions } from './options.ts';
import { GatePassage } from './passage.ts';
import { callResolver, StageError } from './resolver.ts';
import { type RouteOptions, withRoute } from './route-options.ts';

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
  return new StagedGate(options);
}

/** Runs its stages in order: idempotency, cache, limits. */
class StagedGate<Request> implements Gate<Request> {
  readonly #options: GateOptions<Request>;
  readonly #headerStyle: RateLimitFields;
  readonly #events: GateEmitter;
  readonly #idempotency: IdempotencyStage | undefined;

  constructor(options: GateOptions<Request>) {
    this.#options = options;
    this.#headerStyle = options.headers ?? 'x-ratelimit';
    this.#events = new GateEmitter(options.onEvent, createLogger(options.logger));
    const { idempotency, isOutcome = isNotRejection, keepsField } = options;
    this.#idempotency = idempotency && new IdempotencyStage({ idempotency, isOutcome, keepsField });
  }

  enter(request: Request, requestId?: string, outer?: Passage): MaybePromise<Entry> {
    const entry = this.#enter(request, requestId, outer);
    if (!(outer instanceof GatePassage)) return entry;
    return after(entry, (entered) => (entered.kind === 'answer' ? entered : entered.behind(outer)));
  }

  #enter(
    request: Request,
    requestId: string | undefined,
    outer: Passage | undefined,
  ): MaybePromise<Answer | GatePassage> {
    const { idempotent } = this.#options;
    const stage = this.#idempotency;
    if (stage === undefined || idempotent === undefined) return this.#enterLimits(request, requestId);
    // An outer gate holds the claim on this key. A second claim would wait for it: the request would wait for itself.
    if (outer?.isRecorded) return this.#enterLimits(request, requestId);
    try {
      const resolving = callResolver('idempotent', idempotent, request);
      if (resolving === undefined) return this.#enterLimits(request, requestId);
      const id = this.#idFor(requestId, true);
      return Promise.resolve(resolving)
        .then(async (resolved) => {
          if (resolved === undefined) return this.#enterLimits(request, id);
          if (isKeyFault(resolved)) return this.#answer(422, 'errors/unprocessable_entity', resolved.detail, id);
          const idempotentRequest = checkIdempotentRequest(resolved);
          // Resolved before the claim: the account is part of the fingerprint (I2), and its resolver may fail.
          const account = await callResolver('account', this.#options.account, request);
          const keyed = await withFingerprint(idempotentRequest, account);
          return this.#enterWithKey(stage, keyed, request, id, { account });
        })
        .catch((error: unknown) => this.#fail(id, error));
    } catch (error) {
      return this.#fail(requestId, error);
    }
  }

  with(options: RouteOptions<Request>): Gate<Request> {
    return createGate(withRoute(this.#options, options));
  }

  /** Claims the key, then runs the later stages. If one rejects the request, the key is released before the answer. */
  async #enterWithKey(
    stage: IdempotencyStage,
    keyed: FingerprintedRequest,
    request: Request,
    requestId: string,
    known: KnownAccount,
  ): Promise<Answer | GatePassage> {
    const problem = this.#problemFor(requestId);
    const opened = await stage.open(keyed).catch((error: unknown) => {
      throw new StageError('idempotent', error);
    });
    if (opened.kind === 'unavailable') return this.#fail(requestId, new StageError('idempotency', opened.error));
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
          return await this.#dispatch(stage, opened.claim, keyed, problem, entry, requestId);
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
    requestId: string,
  ): Promise<Answer | GatePassage> {
    if (entry.kind === 'answer') {
      const instead = await stage.release(claim, problem);
      return instead === undefined ? entry : { kind: 'answer', reply: instead };
    }
    const dispatch = await claim.dispatch();
    if (dispatch.kind === 'ok')
      return entry.withClaim(stage.recording(claim, keyed, problem), () => stage.release(claim, problem));
    await entry.abandon();
    switch (dispatch.kind) {
      case 'settled':
        return { kind: 'answer', reply: stage.replay(dispatch.result, problem), replayed: true };
      case 'lost':
        return { kind: 'answer', reply: stage.refuse({ kind: 'refused', reason: 'lost' }, keyed, problem) };
      case 'unavailable':
        return this.#fail(requestId, new StageError('idempotency', dispatch.error));
    }
  }

  /** The stages after idempotency: cache and limits. */
  #enterLimits(
    request: Request,
    requestId: string | undefined,
    known?: KnownAccount,
  ): MaybePromise<Answer | GatePassage> {
    const { account, route, provider, cost, cached } = this.#options;
    try {
      const accountId = known === undefined ? callResolver('account', account, request) : known.account;
      const routeName = callResolver('route', route, request);
      const isCached = cached === undefined ? false : callResolver('cached', cached, request);
      const providerName = provider === undefined ? undefined : callResolver('provider', provider, request);
      const units = cost === undefined ? 1 : callResolver('cost', cost, request);
      // Most resolvers only read a header. Without a promise, the request need not wait for a turn of the event loop.
      if (
        !(
          isPromise(accountId) ||
          isPromise(routeName) ||
          isPromise(isCached) ||
          isPromise(providerName) ||
          isPromise(units)
        )
      ) {
        return this.#consume(requestId, isCached, accountId, routeName, providerName, units);
      }
      return Promise.all([isCached, accountId, routeName, providerName, units]).then(
        (values) => this.#consume(requestId, ...values),
        (error: unknown) => this.#fail(requestId, error),
      );
    } catch (error) {
      return this.#fail(requestId, error);
    }
  }

  #consume(
    requestId: string | undefined,
    isCached: boolean,
    account: string | undefined,
    route: string | undefined,
    provider: string | undefined,
    cost: number,
  ): MaybePromise<Answer | GatePassage> {
    if (account === undefined || route === undefined) return this.#skip(requestId, 'not_limited');
    if (isCached === true) return this.#skip(requestId, 'cached');
    // Any other truthy value would let a request past its limit by accident.
    if (isCached)
      return this.#fail(requestId, new StageError('cached', new OptionError('cached', isCached, BAD_CACHED)));
    const { limiter } = this.#options;
    const request = { account, route, provider, cost };
    try {
      if (limiter.synchronous) return this.#enterDecided(requestId, limiter.consumeSync(request));
    } catch (error) {
      return this.#fail(requestId, new StageError('limits', error));
    }
    return limiter.consume(request).then(
      (decision) => this.#enterDecided(requestId, decision),
      (error: unknown) => this.#fail(requestId, new StageError('limits', error)),
    );
  }

  #enterDecided(requestId: string | undefined, decision: Decision): Answer | GatePassage {
    requestId = this.#idFor(requestId, !decision.accepted);
    if (this.#events.hasListener) this.#events.emit({ type: 'decision', requestId, decision });
    const headers = rateLimitFields(decision, this.#headerStyle);
    if (decision.accepted) return this.#createPassage(requestId, decision, headers);
    const retry = 'retry-after' in headers ? `in ${headers['retry-after']} s` : 'later';
    const detail = decision.impossible
      ? 'The request costs more than this limit ever allows; waiting does not help.'
      : `The rate limit of this account is used up; retry ${retry}.`;
    return this.#answer(429, 'api/too_many_requests', detail, requestId, headers);
  }

  #skip(requestId: string | undefined, reason: 'not_limited' | 'cached'): GatePassage {
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

  #fail(requestId: string | undefined, cause: unknown): Answer {
    const { stage, error } = cause instanceof StageError ? cause : new StageError('limits', cause);
    requestId = this.#idFor(requestId, true);
    // Only these two resolvers may read the body.
    const reply =
      stage === 'idempotent' || stage === 'account' ? problemOfBody(error, this.#problemFor(requestId)) : undefined;
    if (reply !== undefined) return { kind: 'answer', reply };
    // Only an error of a store means that the service is unavailable. Any other error is a fault of the program.
    const usesStore = stage === 'limits' || stage === 'idempotency';
    this.#events.emitFailure({ requestId, stage, error });
    if (usesStore && (!isHeadgateError(error) || STORE_CODES.includes(error.code))) {
      const detail = isHeadgateError(error, 'result_unavailable')
        ? RESULT_UNAVAILABLE_DETAIL
        : STORE_FAILURE_DETAILS[stage];
      return this.#answer(503, 'errors/service_unavailable', detail, requestId);
    }
    const detail = 'Internal error. The server log has details under this req_id.';
    return this.#answer(500, 'errors/unexpected_error', detail, requestId);
  }

  #problemFor(requestId: string): AnswerProblem {
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

/** The account of a request whose resolver was already called, so that it is called only once. */
interface KnownAccount {
  readonly account: string | undefined;
}
