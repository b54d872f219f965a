import { OptionError } from '../core/errors.ts';
import { checkOptions } from '../core/options.ts';
import type { MaybePromise } from '../core/ports.ts';
import type { KeyFault } from '../http/idempotency-key.ts';
import type { ProblemMediaType } from '../http/problem.ts';
import { type RateLimitFields, rateLimitStyles } from '../http/rate-limit-fields.ts';
import type { KeepField } from '../http/stored-response.ts';
import type { Idempotency } from '../idempotency/idempotency.ts';
import type { Limiter } from '../limits/limiter.ts';
import type { GateEvent } from './events.ts';
import type { IdempotentRequest } from './idempotency-stage.ts';

/** Reads something of a request; may be asynchronous. */
export type Resolver<Request, Value> = (request: Request) => MaybePromise<Value>;

/** Options of {@link createGate}. `Request` is what the adapter hands over, e.g. Node's `IncomingMessage`. */
export interface GateOptions<Request> {
  /** Decides whether a request may pass. */
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
  /** Keeps outcomes by idempotency key; needs `idempotent`. */
  readonly idempotency?: Idempotency | undefined;
  /**
   * The request's key, scope and fingerprint; undefined for a request without a key, which simply goes on. A `KeyFault`, as `readIdempotencyKey()`
   * of `headgate/http` gives it, becomes a 422, and a `BodyError` that is thrown its own status (I1, I13); nothing is claimed or charged then.
   */
  readonly idempotent?: Resolver<Request, IdempotentRequest | KeyFault | undefined> | undefined;
  /**
   * Whether an answer of this status is kept as the outcome, or says that the provider did nothing, so that the key is given back (I6).
   * @default every status but 429
   */
  readonly isOutcome?: ((status: number) => boolean) | undefined;
  /** Which of an answer's fields, by name in lower case, are stored; `set-cookie`, `date`, rate-limit and hop-by-hop fields never are (I4). */
  readonly keepsField?: KeepField | undefined;
  /**
   * Which rate-limit fields answers carry: a list of `'x-ratelimit'` and `'ietf'`, or one of them alone; `[]` for none.
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
    'problemMediaType',
    'onEvent',
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
    throw new OptionError('idempotent', idempotent, 'goes with idempotency: both or neither');
  }
  for (const name of ['isOutcome', 'keepsField', 'onEvent'] as const) {
    const given = options[name];
    if (given !== undefined && typeof given !== 'function') throw new OptionError(name, given, 'must be a function');
  }
  rateLimitStyles(headers);
  if (!MEDIA_TYPES.includes(problemMediaType)) {
    throw new OptionError('problemMediaType', problemMediaType, `must be one of ${MEDIA_TYPES.join(', ')}`);
  }
}
