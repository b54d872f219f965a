import type { Decision } from '../core/decision.ts';
import { type HeadgateErrorCode, isHeadgateError, OptionError } from '../core/errors.ts';
import { checkOptions } from '../core/options.ts';
import type { MaybePromise } from '../core/ports.ts';
import type { ErrorStatus, ErrorType } from '../http/error-types.ts';
import { createProblem, type ProblemMediaType, problemReply } from '../http/problem.ts';
import { type HeaderFields, type RateLimitFields, rateLimitFields } from '../http/rate-limit-fields.ts';
import type { Limiter } from '../limiter.ts';
import { Events, type FailureEvent, type GateEvent } from './events.ts';
import type { Answer, Entry, Gate, Outcome, Passage, Settlement } from './exchange.ts';

/** Reads something of a request; may be asynchronous. */
export type Resolver<Request, Value> = (request: Request) => MaybePromise<Value>;

/** Options of {@link createGate}. `Request` is what the adapter hands over, e.g. Node's `IncomingMessage`. */
export interface GateOptions<Request> {
  readonly limiter: Limiter;
  /** The connected account that the request spends from; undefined: the request is not limited. */
  readonly account: Resolver<Request, string | undefined>;
  /** The operation, as the limits name it: a matched template such as `POST /api/v1/emails`, never the raw URL. Undefined: not limited. */
  readonly route: Resolver<Request, string | undefined>;
  /** The account's provider, where limits differ by it. */
  readonly provider?: Resolver<Request, string | undefined> | undefined;
  /**
   * What the request costs (S11).
   * @default 1
   */
  readonly cost?: Resolver<Request, number> | undefined;
  /** Whether a cache will answer, so that the request never reaches the limiter (S12). */
  readonly cached?: Resolver<Request, boolean> | undefined;
  /**
   * Which rate-limit fields answers carry.
   * @default 'x-ratelimit'
   */
  readonly headers?: RateLimitFields | undefined;
  /**
   * Media type of the gate's own error answers.
   * @default 'application/json'
   */
  readonly problemMediaType?: ProblemMediaType | undefined;
  /** Hears of every decision; also published on `node:diagnostics_channel` as `headgate:gate`. */
  readonly onEvent?: ((event: GateEvent) => void) | undefined;
}

const FIELDS: readonly RateLimitFields[] = ['x-ratelimit', 'ietf', 'both', 'none'];
const MEDIA_TYPES: readonly ProblemMediaType[] = ['application/json', 'application/problem+json'];
const RESOLVERS = ['account', 'route', 'provider', 'cost', 'cached'] as const;
/** Errors of headgate's own that mean: the store could not decide. */
const STORE_CODES: readonly HeadgateErrorCode[] = ['store_full', 'store_timeout', 'store_unavailable'];
const NO_HEADERS: HeaderFields = Object.freeze({});

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
  check(options);
  return new StagedGate(options);
}

class StagedGate<Request> implements Gate<Request> {
  readonly #options: GateOptions<Request>;
  readonly #fields: RateLimitFields;
  readonly #events: Events;

  constructor(options: GateOptions<Request>) {
    this.#options = options;
    this.#fields = options.headers ?? 'x-ratelimit';
    this.#events = new Events(options.onEvent);
  }

  enter(request: Request, requestId?: string): MaybePromise<Entry> {
    const { account, route, provider, cost, cached } = this.#options;
    try {
      const accountId = ask('account', account, request);
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
  ): MaybePromise<Entry> {
    if (account === undefined || route === undefined) return this.#skip(requestId, 'not_limited');
    if (isCached) return this.#skip(requestId, 'cached');
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

  #decided(requestId: string | undefined, decision: Decision): Entry {
    requestId = this.#idFor(requestId, !decision.accepted);
    if (this.#events.heard) this.#events.emit({ type: 'decision', requestId, decision });
    const headers = rateLimitFields(decision, this.#fields);
    if (decision.accepted) return this.#pass(requestId, decision, headers);
    const detail = decision.impossible
      ? 'The request costs more than this limit ever allows; waiting does not help.'
      : `The rate limit of this account is used up; retry in ${headers['retry-after']} s.`;
    return this.#answer(429, 'api/too_many_requests', detail, requestId, headers);
  }

  #skip(requestId: string | undefined, reason: 'not_limited' | 'cached'): Entry {
    requestId = this.#idFor(requestId);
    if (this.#events.heard) this.#events.emit({ type: 'skipped', requestId, reason });
    return this.#pass(requestId, undefined, NO_HEADERS);
  }

  /** An id where one was given or is needed; making one costs more than the decision. */
  #idFor(requestId: string | undefined, needed = this.#events.heard): string {
    return requestId ?? (needed || this.#events.heard ? crypto.randomUUID() : '');
  }

  #pass(requestId: string, decision: Decision | undefined, headers: HeaderFields): Passage {
    return new GatePassage(decision, headers, requestId, this.#options.limiter, this.#events);
  }

  #failed(requestId: string | undefined, cause: unknown): Answer {
    const { stage, error } = cause instanceof StageError ? cause : new StageError('limits', cause);
    requestId = this.#idFor(requestId, true);
    this.#events.emit({ type: 'failure', requestId, stage, error });
    // A store that cannot decide is not there; everything else is a fault of the program's.
    const storeIsAway = stage === 'limits' && (!isHeadgateError(error) || STORE_CODES.includes(error.code));
    return storeIsAway
      ? this.#answer(
          503,
          'errors/service_unavailable',
          'The rate limit could not be checked; nothing was charged.',
          requestId,
        )
      : this.#answer(
          500,
          'errors/unexpected_error',
          'Something of ours broke; the log has more under this req_id.',
          requestId,
        );
  }

  #answer<Status extends ErrorStatus>(
    status: Status,
    type: ErrorType<Status>,
    detail: string,
    requestId: string,
    headers: HeaderFields = NO_HEADERS,
  ): Answer {
    const problem = createProblem(status, type, detail, requestId);
    return { kind: 'answer', reply: problemReply(problem, headers, this.#options.problemMediaType) };
  }
}

class GatePassage implements Passage {
  readonly kind = 'proceed';
  #open = true;

  constructor(
    readonly decision: Decision | undefined,
    readonly headers: HeaderFields,
    readonly requestId: string,
    private readonly limiter: Limiter,
    private readonly events: Events,
  ) {}

  settle({ status, cached = false }: Outcome): Settlement {
    if (this.#open && cached) void this.#refund();
    this.#open = false;
    if (status !== 429) return { headers: this.headers, stripRateLimit: false };
    this.events.emit({ type: 'provider_rejected', requestId: this.requestId, decision: this.decision });
    return { headers: NO_HEADERS, stripRateLimit: true };
  }

  async abandon(): Promise<void> {
    if (!this.#open) return;
    this.#open = false;
    await this.#refund();
  }

  async #refund(): Promise<void> {
    const { decision, requestId } = this;
    if (decision === undefined) return;
    try {
      this.events.emit({ type: 'refund', requestId, decision, refunded: await this.limiter.refund(decision) });
    } catch (error) {
      this.events.emit({ type: 'failure', requestId, stage: 'refund', error });
    }
  }
}

/** Which stage something broke in. Stays inside the gate. */
class StageError extends Error {
  constructor(
    readonly stage: FailureEvent['stage'],
    readonly error: unknown,
  ) {
    super(stage);
  }
}

function ask<Request, Value>(
  stage: FailureEvent['stage'],
  resolver: Resolver<Request, Value>,
  request: Request,
): MaybePromise<Value> {
  try {
    const value = resolver(request);
    if (!isPromise(value)) return value;
    const told = value.catch((error: unknown) => {
      throw new StageError(stage, error);
    });
    // Another resolver may throw before anybody waits for this one; its rejection must not take the process down.
    told.catch(() => {});
    return told;
  } catch (error) {
    throw new StageError(stage, error);
  }
}

function isPromise<T>(value: MaybePromise<T>): value is Promise<T> {
  return typeof value === 'object' && value !== null && 'then' in value;
}

function check<Request>(options: GateOptions<Request>): void {
  const known = ['limiter', ...RESOLVERS, 'headers', 'problemMediaType', 'onEvent'];
  checkOptions(options, known, 'options');
  const { limiter, headers = 'x-ratelimit', problemMediaType = 'application/json', onEvent } = options;
  if (typeof limiter?.consume !== 'function')
    throw new OptionError('limiter', limiter, 'must be what createLimiter() returns');
  for (const name of RESOLVERS) {
    const resolver = options[name];
    const required = name === 'account' || name === 'route';
    if (typeof resolver !== 'function' && (required || resolver !== undefined)) {
      throw new OptionError(name, resolver, 'must be a function of the request');
    }
  }
  if (!FIELDS.includes(headers)) throw new OptionError('headers', headers, `must be one of ${FIELDS.join(', ')}`);
  if (!MEDIA_TYPES.includes(problemMediaType)) {
    throw new OptionError('problemMediaType', problemMediaType, `must be one of ${MEDIA_TYPES.join(', ')}`);
  }
  if (onEvent !== undefined && typeof onEvent !== 'function')
    throw new OptionError('onEvent', onEvent, 'must be a function');
}
