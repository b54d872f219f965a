import { OptionError } from '../base/errors.ts';
import type { Logger } from '../base/logger.ts';
import { checkFunctions, checkOneOf, checkOptions } from '../base/options.ts';
import { createMisuseLog } from '../core/misuse.ts';
import type { Cost } from '../core/unit.ts';
import type { KeyFault } from '../http/idempotency-key.ts';
import type { ProblemMediaType } from '../http/problem.ts';
import { type RateLimitFields, rateLimitStyles } from '../http/rate-limit-fields.ts';
import type { KeepField } from '../http/stored-response.ts';
import type { KeyOpener } from '../idempotency/idempotency.ts';
import { type CooldownOptions, cooldownSettings } from '../limits/cooldown-options.ts';
import type { Groups } from '../limits/groups.ts';
import { groupsOf, hasNone, layerFields, needsRoute, partsOf } from '../limits/limiter-parts.ts';
import type { Limiter } from '../limits/ports.ts';
import { ROUTE_NEEDED } from '../limits/window-set-cache.ts';
import type { GateEvent } from './events.ts';
import type { IdempotentRequest } from './idempotent-request.ts';
import { noAccountRefusal, type OnNoAccount } from './no-account.ts';
import type { AnswerFunction, Rejection } from './own-answer.ts';
import type { Resolver } from './resolver.ts';

/** A response that comes from behind a gate, as `finalCost` sees it. */
export interface HandlerResponse {
  /** HTTP status. */
  readonly status: number;
  /** Returns a field by its name, in any case; undefined if the response lacks it. */
  header(name: string): string | undefined;
}

/**
 * A rejection that comes from behind a gate, as `providerAnswers` sees it: a 429; with `cooldown` also another status
 * that it lists, and a 503 with `retry-after`.
 */
export type HandlerRejection = HandlerResponse;

/** Whether an answer is the provider's, and whether it keeps the fields that look like the gate's. */
export type ProviderAnswers = boolean | 'pass';

/** Options of {@link createGate}. `Request` is what the adapter passes, e.g. Node's `IncomingMessage`. */
export interface GateOptions<Request> {
  /** Decides whether a request fits its limits. */
  readonly limiter: Limiter;
  /**
   * The connected account whose allowance the request uses. Undefined if there is none: see `onNoAccount`. The
   * empty string is an account like any other.
   */
  readonly account: Resolver<Request, string | undefined>;
  /**
   * The treatment of a request whose account is undefined. `reject`: 401 `errors/missing_credentials`. An object
   * chooses 403 `errors/resource_access_restricted`, or a detail for the client. In each case nothing is claimed or
   * charged, and the handler does not run. `pass`: the request is not limited. A request whose route is undefined
   * passes in any case.
   * @default 'reject'
   */
  readonly onNoAccount?: OnNoAccount | undefined;
  /**
   * Refuses a request with 403 `errors/resource_access_restricted`, before anything else is done for it. A text is the
   * detail, which the client reads. Anything but true, false and a text that is not empty is a 500.
   */
  readonly deny?: Resolver<Request, boolean | string> | undefined;
  /**
   * Whether the request passes without a limit, for example a health check or your own service. It needs no
   * account, and its idempotency key works as usual.
   */
  readonly allow?: Resolver<Request, boolean> | undefined;
  /**
   * The operation, as the limits name it: a matched template such as `POST /api/v1/emails`, never the raw URL.
   * Undefined exempts the request on purpose: it is not limited, and needs no account. The option is required unless
   * all limits are lists of windows, which count all routes together (S34).
   */
  readonly route?: Resolver<Request, string | undefined> | undefined;
  /** The account's provider, if limits differ per provider. */
  readonly provider?: Resolver<Request, string | undefined> | undefined;
  /**
   * The customer's plan, such as `pro`, if limits differ per plan. A plan that is missing in `limits.plans` is a 500.
   * Undefined: the default limits apply.
   */
  readonly plan?: Resolver<Request, string | undefined> | undefined;
  /**
   * Groups that the request counts for beside its account, such as `{ customer: 'cus_7' }`: an id by the name of the
   * group in the limiter's `limits.groups` (S31). Undefined: none. Without the option, limits of groups are an error.
   */
  readonly groups?: Resolver<Request, Groups | undefined> | undefined;
  /**
   * The words with which the detail of a rejection names a group, such as `your organisation`. The client reads them. It
   * gets the name of the group, and never the id.
   * @default `the group customer`, with its name
   */
  readonly describe?: ((group: string) => string) | undefined;
  /**
   * The lane of the request, such as `bulk`, if it may use only the share of that lane in `limits.lanes` (S28). A lane
   * that is missing there is a 500. Undefined: no lane.
   */
  readonly lane?: Resolver<Request, string | undefined> | undefined;
  /**
   * The cost of the request, a positive integer (S11), or one per unit, as in `{ requests: 1, tokens: 800 }` (S33).
   * @default 1, in requests
   */
  readonly cost?: Resolver<Request, Cost> | undefined;
  /**
   * The final cost of the request, by its response: an integer, 0 or more, or one per unit. 0 refunds the charge;
   * undefined keeps it, and units that it does not name stay as they are (S33).
   * Called once, when the status of the handler's response is known; not for answers of a gate, replays, and responses
   * that a cache served. It must not be asynchronous. If it throws, or returns anything else, that is a failure,
   * and the charge stays. The fields of the response show the charge before that (S13).
   */
  readonly finalCost?: ((response: HandlerResponse) => Cost | undefined) | undefined;
  /** Whether a cache will answer, so that the request is not charged (S12). */
  readonly cached?: Resolver<Request, boolean> | undefined;
  /**
   * Stores outcomes under their idempotency keys: `createIdempotency()`, or `createTransactionalIdempotency()` of
   * `headgate/postgres`. Requires `idempotent`.
   */
  readonly idempotency?: KeyOpener | undefined;
  /**
   * The request's key, scope and fingerprint. Undefined for a request without a key, which continues without
   * idempotency. A `KeyFault`, as `readIdempotencyKey()` of `headgate/http` returns it, becomes a 422. A thrown
   * `BodyError` becomes a response with its own status (I1, I13). In both cases nothing is claimed or charged.
   */
  readonly idempotent?: Resolver<Request, IdempotentRequest | KeyFault | undefined> | undefined;
  /**
   * Whether a request without an idempotency key is refused with 400 (I1). Give it to the routes that send, since it
   * applies to every request of its gate. Requires `idempotent`.
   * @default false
   */
  readonly requireKey?: boolean | undefined;
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
   * What the counts belong to, for a client that uses several accounts: the parameter `pk` of `'ietf'`, in `headers`. The
   * client reads it, so it should be no secret: 256 characters at most. It must not be asynchronous. Undefined, or if it
   * fails: no `pk`.
   * @default none
   */
  readonly partitionKey?: ((subject: Pick<Rejection, 'account' | 'route'>) => string | undefined) | undefined;
  /**
   * Whether a 429 from behind the gate is the provider's own answer: then `x-ratelimit-limit`, `-remaining`, `-reset`,
   * `ratelimit` and `ratelimit-policy` are removed from it, because no client may take the provider's limit for yours. Its
   * `retry-after` and other fields stay. `'pass'`: it is the provider's, and keeps every field. If false, the 429 of a
   * handler, or of a limiter of its own, passes untouched. A function decides per response; it must not be asynchronous
   * (S16).
   * @default false; true with `cooldown`
   */
  readonly providerAnswers?: ProviderAnswers | ((response: HandlerRejection) => ProviderAnswers) | undefined;
  /**
   * Pauses an account whose provider answers 429, or 503 with `retry-after`: its requests get 429
   * `provider/too_many_requests` until then, in every process that shares the store. Afterwards the first request goes
   * alone (S30). The gate sees the answers of its handler that are the provider's (`providerAnswers`). A handler that
   * calls its provider itself reports the answer: `passageOf(request)?.cooldown(response)`.
   * @default false
   */
  readonly cooldown?: boolean | CooldownOptions | undefined;
  /**
   * Media type of the gate's own error responses.
   * @default 'application/json'
   */
  readonly problemMediaType?: ProblemMediaType | undefined;
  /**
   * Makes your own answer of each error that the gate answers itself, of any status; undefined leaves it as it
   * is. Replays of stored responses are not passed to it. It must not be asynchronous. If it fails, the failure is
   * logged, and the answer is the gate's.
   * @default the error object, as JSON
   */
  readonly answer?: AnswerFunction<Request> | undefined;
  /**
   * `throw`: each error that the gate would answer becomes an error in the framework's own error handling: exception
   * filters in Nest, `next(error)` in Express, the error handler in Fastify, Koa, Hono, h3 and Elysia. `rejectionOf()` of
   * `headgate/gate` finds its status, fields, error object and decision. Not with `answer`. Answers that replace the
   * response of a handler that ran already are sent as usual.
   * @default 'answer'
   */
  readonly rejection?: 'answer' | 'throw' | undefined;
  /** Receives every event, which is also published on `node:diagnostics_channel` as `headgate:gate`. */
  readonly onEvent?: ((event: GateEvent) => void) | undefined;
  /**
   * Is called once with each failure, whether anything listens to events or not, with what `onEvent` throws, and with
   * the warnings of `validate`.
   * `(message, error) => log.error({ err: error }, message)` writes to your own log; false: nothing is logged.
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

const NOT_RESOLVER = 'must be a function of the request';
const NAMELESS_ROUTE =
  'must be given with limits of a route, which count it by its name: a text, or a function of the request such as routeOf';
const GROUPS_UNUSED =
  'without it, limits.groups of the limiter would never apply. () => undefined if only routes of this gate set it';
const SHARED_POOL =
  'must have another client than the store of the limiter: open transactions would take the connections of the limits';
const MEDIA_TYPES: readonly ProblemMediaType[] = ['application/json', 'application/problem+json'];
/** The options of a gate that are functions of the request. */
export const RESOLVERS = [
  'deny',
  'allow',
  'account',
  'route',
  'provider',
  'plan',
  'groups',
  'lane',
  'cost',
  'cached',
  'idempotent',
] as const;
const FUNCTIONS = ['describe', 'finalCost', 'isOutcome', 'keepsField', 'partitionKey', 'answer', 'onEvent'] as const;
const LOGS = ['logger', 'validate'];
const OTHERS = [
  'limiter',
  'onNoAccount',
  'idempotency',
  'requireKey',
  'headers',
  'providerAnswers',
  'cooldown',
  'problemMediaType',
  'rejection',
];

/**
 * @param hasRouteLimits whether they are the options of a route with its own limit
 * @throws OptionError
 */
export function checkGateOptions<Request>(options: GateOptions<Request>, hasRouteLimits = false): void {
  checkOptions(options, [...OTHERS, ...RESOLVERS, ...FUNCTIONS, ...LOGS], 'options');
  const { limiter, problemMediaType = 'application/json' } = options;
  if (typeof limiter?.consume !== 'function')
    throw new OptionError('limiter', limiter, 'must be what createLimiter() returns');
  for (const name of RESOLVERS) {
    const resolver = options[name];
    if (typeof resolver !== 'function' && (name === 'account' || resolver !== undefined))
      throw new OptionError(name, resolver, NOT_RESOLVER);
  }
  if (options.route === undefined && hasRouteLimits) throw new OptionError('route', undefined, NAMELESS_ROUTE);
  if (options.route === undefined && needsRoute(limiter))
    throw new OptionError('route', undefined, `${NOT_RESOLVER}: ${ROUTE_NEEDED}`);
  const ignored = layerFields(limiter).find((name) => options[name] === undefined);
  if (ignored !== undefined) {
    const reason = `${NOT_RESOLVER}: without it, limits.${ignored}s of the limiter would never apply`;
    throw new OptionError(ignored, undefined, `${reason}. () => undefined if only routes of this gate set it`);
  }
  checkGroups(options);
  if (options.lane !== undefined && hasNone(limiter, 'lanes'))
    throw new OptionError('lane', options.lane, 'the limits of the limiter have no lanes: add limits.lanes', 'given');
  checkIdempotency(options);
  checkFunctions(options, FUNCTIONS);
  const { providerAnswers = false } = options;
  if (!isProviderAnswers(providerAnswers) && typeof providerAnswers !== 'function') {
    throw new OptionError(
      'providerAnswers',
      providerAnswers,
      "must be true, false, 'pass' or a function of the response",
    );
  }
  cooldownSettings(options.cooldown);
  noAccountRefusal(options.onNoAccount);
  createMisuseLog(options);
  checkAnswers(options);
  checkOneOf('problemMediaType', problemMediaType, MEDIA_TYPES);
}

/** @throws OptionError */
function checkGroups<Request>({ limiter, groups, describe }: GateOptions<Request>): void {
  if (groups === undefined && groupsOf(limiter).length > 0)
    throw new OptionError('groups', undefined, `${NOT_RESOLVER}: ${GROUPS_UNUSED}`);
  if (groups !== undefined && hasNone(limiter, 'groups'))
    throw new OptionError('groups', groups, 'the limits of the limiter have no groups: add limits.groups', 'given');
  if (groups === undefined && describe !== undefined)
    throw new OptionError('describe', describe, 'needs groups, whose names it gets', 'given');
}

export function isProviderAnswers(value: unknown): value is ProviderAnswers {
  return typeof value === 'boolean' || value === 'pass';
}

/** @throws OptionError */
function checkIdempotency<Request>(options: GateOptions<Request>): void {
  const { limiter, idempotency, idempotent } = options;
  if (idempotency !== undefined && typeof idempotency?.open !== 'function') {
    throw new OptionError('idempotency', idempotency, 'must be what createIdempotency() returns');
  }
  const { identity } = partsOf(limiter)?.store ?? {};
  if (identity !== undefined && idempotency?.sharesConnections?.(identity))
    throw new OptionError('idempotency', idempotency, SHARED_POOL);
  if ((idempotency === undefined) !== (idempotent === undefined)) {
    throw new OptionError('idempotent', idempotent, 'must be given if idempotency is given, and only then');
  }
  const { requireKey = false } = options;
  if (typeof requireKey !== 'boolean') throw new OptionError('requireKey', requireKey, 'must be true or false');
  if (requireKey && idempotent === undefined) {
    throw new OptionError('requireKey', requireKey, 'needs idempotency and idempotent, or no key is ever read');
  }
}

/** @throws OptionError */
function checkAnswers(options: GateOptions<never>): void {
  const { headers = 'x-ratelimit', partitionKey, rejection = 'answer', answer } = options;
  if (!rateLimitStyles(headers).includes('ietf') && partitionKey !== undefined)
    throw new OptionError('partitionKey', partitionKey, "needs 'ietf' in headers, or no field carries it");
  checkOneOf('rejection', rejection, ['answer', 'throw']);
  if (rejection === 'throw' && answer !== undefined)
    throw new OptionError('rejection', rejection, 'must not be given with answer: the error handler makes the answer');
}
