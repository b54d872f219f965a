import { type HeadgateErrorCode, isHeadgateError, OptionError } from '../base/errors.ts';
import { isPromise } from '../base/maybe-promise.ts';
import { PROVIDER } from '../core/cooldown.ts';
import type { Decision } from '../core/decision.ts';
import type { ErrorStatus, ErrorType } from '../http/error-types.ts';
import { createProblem, problemReply, type Reply } from '../http/problem.ts';
import { type HeaderFields, rateLimitFields } from '../http/rate-limit-fields.ts';
import type { Cooldown } from '../limits/cooldown.ts';
import { OF_ACCOUNT } from '../limits/joint-decision.ts';
import { problemOfBody } from './body-problem.ts';
import type { GateEmitter, RefusedEvent, SkippedEvent } from './events.ts';
import type { GateAnswer } from './gate.ts';
import type { GateChecks, WhyNotLimited } from './gate-checks.ts';
import type { AnswerProblem } from './idempotency-stage.ts';
import type { GateOptions } from './options.ts';
import { ownReply } from './own-answer.ts';
import { GatePassage } from './passage.ts';
import { RejectionError } from './rejection-error.ts';
import { StageError } from './resolver.ts';

/** Errors which mean that the store could not decide. */
const STORE_CODES: readonly HeadgateErrorCode[] = [
  'store_full',
  'store_timeout',
  'store_unavailable',
  'store_setup',
  'result_unavailable',
];
/** Details of a 503, per stage that uses a store. */
const STORE_FAILURE_DETAILS = {
  limits: 'The rate limit could not be checked; nothing was charged.',
  idempotency: 'The idempotency key could not be claimed; nothing was sent. Retry with the same key.',
} as const;
const RESULT_UNAVAILABLE_DETAIL =
  'The original request has completed, but its stored response cannot be read now. Retry with the same key.';
/** A header field carries it twice per window. */
const MAX_PARTITION_KEY = 256;
const NO_HEADERS: HeaderFields = /* @__PURE__ */ Object.freeze({});

/** Makes the result of a request at a gate, a passage or an answer, and emits its event. */
export class GateEntries<Request> {
  readonly #options: GateOptions<Request>;
  readonly #events: GateEmitter;
  readonly #checks: GateChecks | undefined;
  readonly #cooldown: Cooldown | undefined;

  constructor(
    options: GateOptions<Request>,
    events: GateEmitter,
    checks: GateChecks | undefined,
    cooldown?: Cooldown | undefined,
  ) {
    this.#cooldown = cooldown;
    this.#options = options;
    this.#events = events;
    this.#checks = checks;
  }

  /** The result of a limit: a passage, 429, or 422 if waiting does not help (S8, S11). */
  decided(request: Request, requestId: string | undefined, decision: Decision): GateAnswer | GatePassage {
    const id = this.idFor(requestId, !decision.accepted);
    this.#checks?.passed();
    if (this.#events.hasListener) this.#events.emit({ type: 'decision', requestId: id, decision });
    const headers = rateLimitFields(decision, this.#options.headers, this.#partitionKeyOf(decision, id));
    if (decision.accepted) return this.#createPassage(id, decision, headers);
    // The store that is away may know another max than the failure policy.
    if (decision.impossible && !decision.degraded) {
      const detail = neverFitsDetail(decision);
      return this.answer(422, 'api/cost_exceeds_limit', detail, request, id, headers, decision);
    }
    const detail = rejectionDetail(decision, headers, (group) => this.#describe(group, id));
    const type = decision.blocked?.reason === PROVIDER ? 'provider/too_many_requests' : 'api/too_many_requests';
    return this.answer(429, type, detail, request, id, headers, decision);
  }

  /**
   * Lets a request pass without a decision.
   * @param whyNot the reason that the checks count: a missing account is not a missing route
   */
  skip(requestId: string | undefined, reason: SkippedEvent['reason'], whyNot: WhyNotLimited = reason): GatePassage {
    requestId = this.idFor(requestId);
    this.#checks?.passed(whyNot);
    if (this.#events.hasListener) this.#events.emit({ type: 'skipped', requestId, reason });
    return this.#createPassage(requestId, undefined, NO_HEADERS);
  }

  /** Answers a request that may not pass, whatever its limits are. */
  refuse<Status extends 401 | 403>(
    reason: RefusedEvent['reason'],
    status: Status,
    type: ErrorType<Status>,
    detail: string,
    request: Request,
    requestId: string | undefined,
  ): GateAnswer {
    const id = this.idFor(requestId, true);
    this.#events.emit({ type: 'refused', requestId: id, reason, status });
    return this.answer(status, type, detail, request, id);
  }

  /** Answers a request for which a stage failed. */
  fail(request: Request, requestId: string | undefined, cause: unknown): GateAnswer {
    const { stage, error } = cause instanceof StageError ? cause : new StageError('limits', cause);
    requestId = this.idFor(requestId, true);
    // Any resolver may read the body.
    const reply = problemOfBody(error, this.problemFor(request, requestId));
    if (reply !== undefined) return { kind: 'answer', reply };
    // Only an error of a store means that the service is unavailable. Any other error is a fault of the program.
    const usesStore = stage === 'limits' || stage === 'idempotency';
    this.#events.emitFailure({ requestId, stage, error });
    if (usesStore && (!isHeadgateError(error) || STORE_CODES.includes(error.code))) {
      const detail = isHeadgateError(error, 'result_unavailable')
        ? RESULT_UNAVAILABLE_DETAIL
        : STORE_FAILURE_DETAILS[stage];
      return this.answer(503, 'errors/service_unavailable', detail, request, requestId);
    }
    const detail = 'Internal error. The server log has details under this req_id.';
    return this.answer(500, 'errors/unexpected_error', detail, request, requestId);
  }

  /** Makes the replies of a stage for one request. */
  problemFor(request: Request, requestId: string): AnswerProblem {
    return (status, type, detail, headers) => this.answer(status, type, detail, request, requestId, headers).reply;
  }

  /** An answer of the gate itself: its error object, or what the options `answer` and `rejection` make of it. */
  answer<Status extends ErrorStatus>(
    status: Status,
    type: ErrorType<Status>,
    detail: string,
    request: Request,
    requestId: string,
    headers: Reply['headers'] = NO_HEADERS,
    decision?: Decision,
  ): GateAnswer {
    const { answer, problemMediaType, rejection } = this.#options;
    const problem = createProblem(status, type, detail, requestId);
    const reply = problemReply(problem, headers, problemMediaType);
    if (rejection === 'throw') {
      const error = new RejectionError(problem, reply, decision);
      return { kind: 'answer', reply: { ...reply, error }, decision };
    }
    if (answer === undefined) return { kind: 'answer', reply, decision };
    try {
      const own = ownReply(answer, problem, reply, { request, requestId, decision });
      return { kind: 'answer', reply: own ?? reply, decision };
    } catch (error) {
      this.#events.emitFailure({ requestId, stage: 'answer', error });
      return { kind: 'answer', reply, decision };
    }
  }

  /** The given id, or a new one if an answer or an event needs it: creating an id costs more than the decision. */
  idFor(requestId: string | undefined, isNeeded = this.#events.hasListener): string {
    return requestId ?? (isNeeded || this.#events.hasListener ? crypto.randomUUID() : '');
  }

  #partitionKeyOf(decision: Decision, requestId: string): string | undefined {
    const { partitionKey } = this.#options;
    if (partitionKey === undefined) return undefined;
    try {
      const key: unknown = partitionKey(decision);
      // No other code handles its rejection, which would end the process.
      if (isPromise(key)) key.then(undefined, () => {});
      if (key === undefined) return undefined;
      if (typeof key === 'string' && key.length <= MAX_PARTITION_KEY) return key;
      const reason = `must return undefined or a text of ${MAX_PARTITION_KEY} characters at most`;
      throw new OptionError('partitionKey()', key, reason, typeof key === 'string' ? 'a longer text' : undefined);
    } catch (error) {
      this.#events.emitFailure({ requestId, stage: 'partitionKey', error });
      return undefined;
    }
  }

  #describe(group: string, requestId: string): string {
    const { describe } = this.#options;
    const ofGroup = `the group ${group}`;
    try {
      const words: unknown = describe === undefined ? ofGroup : describe(group);
      if (typeof words === 'string') return words;
      if (isPromise(words)) words.then(undefined, () => {});
      throw new OptionError('describe()', words, 'must return a text');
    } catch (error) {
      this.#events.emitFailure({ requestId, stage: 'describe', error });
      return ofGroup;
    }
  }

  #createPassage(requestId: string, decision: Decision | undefined, headers: HeaderFields): GatePassage {
    return new GatePassage(decision, headers, requestId, this.#options, this.#events, this.#checks, this.#cooldown);
  }
}

function neverFitsDetail({ shown }: Decision): string {
  const what = shown?.unit === undefined ? 'this limit' : `this limit of ${shown.unit}`;
  return `The request costs more than ${what} ever allows; waiting does not help.`;
}

/** @param describeGroup the words for a group */
function rejectionDetail(
  { blocked, inFlight, shown, parts, rejectedBy = OF_ACCOUNT }: Decision,
  headers: HeaderFields,
  describeGroup: (name: string) => string,
): string {
  const retry = 'retry-after' in headers ? `in ${headers['retry-after']} s` : 'later';
  const group = parts === undefined || rejectedBy === OF_ACCOUNT ? undefined : describeGroup(rejectedBy);
  if (inFlight !== undefined) {
    const { running, max } = inFlight;
    return `${running} of at most ${max} requests${group === undefined ? '' : ` of ${group}`} are running; retry when one has ended.`;
  }
  if (blocked === undefined) {
    const state = (shown?.remaining ?? 0) > 0 ? 'has not enough left for this request' : 'is used up';
    const of = [shown?.unit, group].map((name) => (name === undefined ? '' : `of ${name} `)).join('');
    return `The rate limit ${of}${state}; retry ${retry}.`;
  }
  const owner = group ?? 'this account';
  if (blocked.reason === PROVIDER) return `The provider takes no more requests of ${owner} now; retry ${retry}.`;
  const detail = `Requests like this one are blocked for ${owner}; retry ${retry}.`;
  return blocked.reason === undefined ? detail : `${detail} Reason: ${blocked.reason}`;
}
