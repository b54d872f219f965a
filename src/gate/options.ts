import { OptionError } from '../core/errors.ts';
import type { Logger } from '../core/logger.ts';
import { createMisuseLog } from '../core/misuse.ts';
import { checkOptions } from '../core/options.ts';
import type { KeyFault } from '../http/idempotency-key.ts';
import type { ProblemMediaType } from '../http/problem.ts';
import { type RateLimitFields, rateLimitStyles } from '../http/rate-limit-fields.ts';
import type { KeepField } from '../http/stored-response.ts';
import type { Idempotency } from '../idempotency/idempotency.ts';
import type { Limiter } from '../limits/limiter.ts';
import type { GateEvent } from './events.ts';
import type { IdempotentRequest } from './idempotent-request.ts';
import type { Resolver } from './resolver.ts';

/** A 429 that comes from behind a gate, as `providerAnswers` sees it. */
export interface HandlerRejection {
  readonly status: 429;
  /** Returns a field by its name, in any case; undefined if the response does not have it. */
  header(name: string): string | undefined;
}

/** Options of {@link createGate}. `Request` is what the adapter passes, e.g. Node's `IncomingMessage`. */
export interface GateOptions<Request> {
  /** Decides whether a request fits its limits. */
  readonly limiter: Limiter;
  /** The connected account whose allowance the request uses. Undefined: the request is not limited. */
  readonly account: Resolver<Request, string | undefined>;
  /**
   * The operation, as the limits name it: a matched template such as `POST /api/v1/emails`, never the raw URL.
   * Undefined: the request is not limited.
   */
  readonly route: Resolver<Request, string | undefined>;
  /** The account's provider, if limits differ per provider. */
  readonly provider?: Resolver<Request, string | undefined> | undefined;
  /**
   * The cost of the request, a positive integer (S11).
   * @default 1
   */
  readonly cost?: Resolver<Request, number> | undefined;
  /** Whether a cache will answer, so that the request is not charged (S12). */
  readonly cached?: Resolver<Request, boolean> | undefined;
  /** Stores outcomes under their idempotency keys. Requires `idempotent`. */
  readonly idempotency?: Idempotency | undefined;
  /**
   * The request's key, scope and fingerprint. Undefined for a request without a key, which continues without
   * idempotency. A `KeyFault`, as `readIdempotencyKey()` of `headgate/http` returns it, becomes a 422. A thrown
   * `BodyError` becomes a response with its own status (I1, I13). In both cases nothing is claimed or charged.
   */
  readonly idempotent?: Resolver<Request, IdempotentRequest | KeyFault | undefined> | undefined;
  /**
   * Whether a response with this status is stored as the outcome. If false, the provider did nothing, and the key is
   * released (I6).
   * @default every status but 429
   */
  readonly isOutcome?: ((status: number) => boolean) | undefined;
  /**
   * Which header fields of a response are stored; receives the name in lower case. `set-cookie`, `date`, rate-limit and
   * hop-by-hop fields are never stored (I4).
   * @default all others
   */
  readonly keepsField?: KeepField | undefined;
  /**
   * Which rate-limit fields answers carry: a list of `'x-ratelimit'` and `'ietf'`, or one of them alone; `[]` for none.
   * @default 'x-ratelimit'
   */
  readonly headers?: RateLimitFields | undefined;
  /**
   * Whether a 429 from behind the gate is the provider's own answer: then every rate-limit field is removed from it,
   * because no client may take the provider's limit for yours. If false, the 429 of a handler, or of a limiter of its
   * own, passes untouched. A function decides per response; it must not be asynchronous (S16).
   * @default false
   */
  readonly providerAnswers?: boolean | ((response: HandlerRejection) => boolean) | undefined;
  /**
   * Media type of the gate's own error responses.
   * @default 'application/json'
   */
  readonly problemMediaType?: ProblemMediaType | undefined;
  /** Receives every event, which is also published on `node:diagnostics_channel` as `headgate:gate`. */
  readonly onEvent?: ((event: GateEvent) => void) | undefined;
  /**
   * Is called once with each failure, whether anything listens to events or not, with what `onEvent` throws, and with
   * the warnings of `validate`.
   * `(message, error) => log.error({ err: error }, message)` writes to a log of your own; false: nothing is logged.
   * @default console.error, with the stack of the error
   */
  readonly logger?: Logger | false | undefined;
  /**
   * Whether signs of a mistake are logged, once each, such as an account that is always undefined. `docs/misuse.md`
   * lists them.
   * @default true
   */
  readonly validate?: boolean | undefined;
}

const MEDIA_TYPES: readonly ProblemMediaType[] = ['application/json', 'application/problem+json'];
const RESOLVERS = ['account', 'route', 'provider', 'cost', 'cached', 'idempotent'] as const;

/** @throws OptionError */
export function checkGateOptions<Request>(options: GateOptions<Request>): void {
  const known = [
    'limiter',
    ...RESOLVERS,
    'idempotency',
    'isOutcome',
    'keepsField',
    'headers',
    'providerAnswers',
    'problemMediaType',
    'onEvent',
    'logger',
    'validate',
  ];
  checkOptions(options, known, 'options');
  const { limiter, headers = 'x-ratelimit', problemMediaType = 'application/json' } = options;
  if (typeof limiter?.consume !== 'function')
    throw new OptionError('limiter', limiter, 'must be what createLimiter() returns');
  for (const name of RESOLVERS) {
    const resolver = options[name];
    const required = name === 'account' || name === 'route';
    if (typeof resolver !== 'function' && (required || resolver !== undefined)) {
      throw new OptionError(name, resolver, 'must be a function of the request');
    }
  }
  const { idempotency, idempotent } = options;
  if (idempotency !== undefined && typeof idempotency.open !== 'function') {
    throw new OptionError('idempotency', idempotency, 'must be what createIdempotency() returns');
  }
  if ((idempotency === undefined) !== (idempotent === undefined)) {
    throw new OptionError('idempotent', idempotent, 'must be given if idempotency is given, and only then');
  }
  for (const name of ['isOutcome', 'keepsField', 'onEvent'] as const) {
    const given = options[name];
    if (given !== undefined && typeof given !== 'function') throw new OptionError(name, given, 'must be a function');
  }
  const { providerAnswers = false } = options;
  if (typeof providerAnswers !== 'boolean' && typeof providerAnswers !== 'function') {
    throw new OptionError('providerAnswers', providerAnswers, 'must be true, false or a function of the response');
  }
  createMisuseLog(options);
  rateLimitStyles(headers);
  if (!MEDIA_TYPES.includes(problemMediaType)) {
    throw new OptionError('problemMediaType', problemMediaType, `must be one of ${MEDIA_TYPES.join(', ')}`);
  }
}
