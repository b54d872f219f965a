import type { Decision } from '../core/decision.ts';
import type { MaybePromise } from '../core/ports.ts';
import type { Reply } from '../http/problem.ts';
import type { HeaderFields } from '../http/rate-limit-fields.ts';
import type { Recording } from './recording.ts';
import type { RouteOptions } from './route-options.ts';

/** What came back from behind the gate, as far as the gate must know it. */
export interface Outcome {
  /** HTTP status that the handler or the upstream answered. */
  readonly status: number;
  /** Whether the answer was served from a cache after all, so that the provider did not see the request (S12). */
  readonly cached?: boolean;
}

/** The request may go on. Exactly one of `settle` and `abandon` is to be called, once; later calls do nothing. */
export interface Passage {
  readonly kind: 'proceed';
  /** Undefined where the request is not limited. */
  readonly decision: Decision | undefined;
  /** For the answer, whatever its status; on a 429 of the provider's own see {@link Settlement}. */
  readonly headers: HeaderFields;
  /** The head of the answer is known: says which fields go on it. */
  settle(outcome: Outcome): Settlement;
  /** The part of `headers` that goes on every answer, errors of the adapter's own included. */
  readonly marks?: HeaderFields;
  /** Where the outcome is kept for retries: undefined for a request that is not idempotent. */
  readonly recording?: Recording | undefined;
  /**
   * The request is known not to have reached the provider: its charge is taken back (S13), and its idempotency key given back (I6). Resolves to
   * the answer that the client gets instead, where another outcome is kept already. Never rejects.
   */
  abandon(): Promise<Reply | undefined>;
}

/** What goes on the answer. */
export interface Settlement {
  readonly headers: HeaderFields;
  /** True on the provider's own 429: no rate-limit field, ours or anybody's, may stand on it (S16). */
  readonly stripRateLimit: boolean;
}

/** The gate answers by itself; the request goes no further. */
export interface Answer {
  readonly kind: 'answer';
  readonly reply: Reply;
  /** It is the kept outcome of an earlier request with the same idempotency key (I4). */
  readonly replayed?: boolean;
}

/** What {@link Gate.enter} says. */
export type Entry = Answer | Passage;

/** The passage of one HTTP exchange through idempotency and limits, for every framework alike. */
export interface Gate<Request> {
  /**
   * Runs the stages in front of the handler. Never rejects: what breaks becomes a 500 or 503 answer, with nothing charged.
   * Returns at once where everything it asks answers at once. A property, since a method would be open to requests of another kind.
   * @param requestId put into error answers as `req_id` and into events; made here when absent
   * @param outer of the gate in front of this one, where the request has passed one: an outcome that is kept there is not kept here as well
   */
  readonly enter: (request: Request, requestId?: string, outer?: Passage) => MaybePromise<Entry>;
  /**
   * The same gate, with what one route says in place of the gate's own options. To be made once for each route, not for each request.
   * @throws OptionError
   */
  with(options: RouteOptions<Request>): Gate<Request>;
}
