import type { MaybePromise } from '../base/maybe-promise.ts';
import type { Decision } from '../core/decision.ts';
import type { Reply } from '../http/problem.ts';
import type { HeaderFields } from '../http/rate-limit-fields.ts';
import type { CooldownReport } from '../limits/cooldown.ts';
import type { ProviderResponse } from '../limits/cooldown-options.ts';
import type { ResponseRecording } from './recording.ts';
import type { RejectionError } from './rejection-error.ts';
import type { RouteOptions } from './route-options.ts';

/** The facts that the gate needs about the response of the handler or the upstream. */
export interface GateOutcome {
  /** HTTP status of the response. */
  readonly status: number;
  /**
   * True if a cache answered after all, so that the provider did not get the request: its charge is refunded (S12).
   * @default false
   */
  readonly cached?: boolean;
  /**
   * True if another gate, behind this one, answered: nothing was executed, and a 429 keeps the fields of that gate.
   * @default false
   */
  readonly fromGate?: boolean;
  /**
   * True if neither a handler nor an upstream answered, such as after a time-out: the status is the adapter's own. It starts
   * and ends no cooldown.
   * @default false
   */
  readonly unanswered?: boolean;
  /** Reads a field of the response by its name, in any case, for `providerAnswers` and `finalCost`. */
  readonly header?: ((name: string) => string | undefined) | undefined;
}

/**
 * The gate lets the request through. The adapter must call exactly one of `settle` and `abandon`, once, and `end` when
 * the response has ended. Later calls change nothing.
 */
export interface Passage {
  readonly kind: 'proceed';
  /** Undefined if the request is not limited. */
  readonly decision: Decision | undefined;
  /** Headers for a response with any status but 429: see {@link Settlement}. */
  readonly headers: HeaderFields;
  /** Call it when the status of the response is known. Returns the headers for that response. */
  settle(outcome: GateOutcome): Settlement;
  /** The part of `headers` for every response, also the adapter's own errors: `idempotency-status`, or nothing. */
  readonly marks?: HeaderFields;
  /**
   * Stores the response for retries. Undefined if the request is without an idempotency key, or if the key is bypassed.
   */
  readonly recording?: ResponseRecording | undefined;
  /** True if this gate, or one in front of it, stores the outcome: a gate behind it claims no key. */
  readonly isRecorded?: boolean | undefined;
  /** True if the response decides the cost of the request, also if its client is gone and never gets it. */
  readonly hasFinalCost?: boolean;
  /**
   * The open transaction of the idempotency key, with `createTransactionalIdempotency()`. Read it by its
   * `transactionOf()`, which knows its type.
   */
  readonly transaction?: object | undefined;
  /**
   * With `dispatch: 'explicit'` of the idempotent request, the handler awaits it just before its effect. From then on the
   * request may have been executed. Resolves at once for every other request.
   * @param note for the rows that the claim store writes in the same step (`rows.dispatch`): a JSON value
   * @throws (rejects with) NotDispatchedError if the effect must not happen, because another attempt owns the key by now,
   * or because the store does not answer. Do not catch it: the client gets the right answer, whatever the response says.
   * OptionError for a note that cannot be written, also if the request has no claim, or is not `explicit`
   */
  dispatch(note?: unknown): Promise<void>;
  /**
   * Sets the note for the rows that the claim store writes with the outcome (`rows.complete`), or with the release of the
   * key (`rows.abandon`). The gate does one of the two once the handler has answered. A later call replaces the note.
   * @throws OptionError for a note that cannot be written, also if the request has no claim
   */
  noteOutcome(note: unknown): void;
  /**
   * Reports the provider's answer to this request, for a gate with `cooldown`: a 429, or a 503 with `retry-after`, pauses
   * the account; any other answer to the first request after a pause ends it. Then the status of the handler's own response
   * no longer matters for that. Report every answer.
   * @param response of `fetch`, or an object with `status` and `headers`
   * @returns what changed; undefined if nothing did
   * @throws (rejects with) OptionError without `cooldown`, and for anything that is no response. A failure of the store is
   * an event, and logged
   */
  cooldown(response: ProviderResponse): Promise<CooldownReport | undefined>;
  /**
   * Call it if the effect of a dispatched request may have happened, or not, such as after a time-out. The gate then
   * neither stores the response nor releases the key: a retry finds an orphan, for which `onOrphan` decides. Resolves once
   * the store knows, or does not answer. Never rejects.
   */
  leave(): Promise<void>;
  /**
   * Call it if the request is known not to have reached the provider. The charge is refunded (S13), and the idempotency
   * key is released (I6). Resolves to the response that the client must get instead, if another outcome is already
   * stored under the key. Never rejects.
   */
  abandon(): Promise<Reply | undefined>;
  /** True if the request counts as in flight until `end` or `abandon` is called (S29). */
  readonly holdsSlot?: boolean | undefined;
  /**
   * Call it when the response has ended, or the client is gone: the request is in flight no more (S29). Never rejects.
   */
  end?(): MaybePromise<void>;
}

/** The headers of a response that a request got after the gate had let it through. */
export interface Settlement {
  /** Headers to add to the response. Without rate-limit fields if another gate of the request shows its own (S6). */
  readonly headers: HeaderFields;
  /**
   * True if the provider itself answered 429: remove the fields of `NUMBER_FIELD_NAMES` of `headgate/http`, also the provider's (S16).
   */
  readonly stripRateLimit: boolean;
  /**
   * Given if the provider refused the request and a cooldown may begin: resolves once it is stored, and never rejects. A
   * client that gets the answer afterwards finds its account paused in every process (S30).
   */
  readonly cooling?: Promise<unknown> | undefined;
}

/** An answer of a gate. */
export interface GateReply extends Reply {
  /** If given, the adapter passes it to the framework in place of the answer: see the option `rejection`. */
  readonly error?: RejectionError | undefined;
}

/** The gate answers the request itself. The request must not reach the handler. */
export interface GateAnswer {
  readonly kind: 'answer';
  readonly reply: GateReply;
  /**
   * True if `reply` is the stored response of an earlier request with the same idempotency key (I4).
   * @default false
   */
  readonly replayed?: boolean;
  /** The decision that rejected the request; undefined if no limit rejected it. */
  readonly decision?: Decision | undefined;
}

/** Result of {@link Gate.enter}: an answer, or permission to continue. */
export type GateEntry = GateAnswer | Passage;

/** Checks idempotency and limits of each HTTP request. Independent of any framework. */
export interface Gate<Request> {
  /**
   * Runs all checks that come before the handler. Never throws or rejects: an error becomes a 500 or 503 answer, and
   * nothing is charged. Returns without a promise if no resolver and no store returns one. A property, because a method
   * would also accept requests of another type.
   * @param requestId goes into error answers as `req_id`, and into events; a random UUID by default
   * @param outer the passage of the gate in front of this one: if that gate stores the outcome, this one does not. Only
   * one of the two shows its window
   */
  readonly enter: (request: Request, requestId?: string, outer?: Passage) => MaybePromise<GateEntry>;
  /**
   * Returns a gate that replaces some options for one route. Call it once per route, not once per request.
   * @throws OptionError
   */
  with(options: RouteOptions<Request>): Gate<Request>;
  /** Whether the option `rejection` is `'throw'`. */
  readonly throws?: boolean | undefined;
}
