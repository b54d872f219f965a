import { checkOptions } from '../base/options.ts';
import type { Limit, LimitInput } from '../core/limit.ts';
import type { Cost } from '../core/unit.ts';
import { checkCosts } from '../limits/costs.ts';
import { parseRouteLimits } from '../limits/layer-input.ts';
import { type GateOptions, RESOLVERS } from './options.ts';
import type { Resolver } from './resolver.ts';

/** Options of one route. They replace the gate's options; options that are absent keep the gate's value. */
export interface RouteOptions<Request>
  extends Partial<
    Pick<
      GateOptions<Request>,
      | 'account'
      | 'onNoAccount'
      | 'deny'
      | 'allow'
      | 'provider'
      | 'plan'
      | 'groups'
      | 'cached'
      | 'finalCost'
      | 'providerAnswers'
      | 'cooldown'
      | 'answer'
      | 'rejection'
    >
  > {
  /**
   * The operation, as the limits name it. If the framework knows the template, its adapter offers a resolver for it.
   */
  readonly route?: string | Resolver<Request, string | undefined> | undefined;
  /** The lane of the requests of this route, such as `bulk` (S28). */
  readonly lane?: string | Resolver<Request, string | undefined> | undefined;
  /** The cost of a request of this route, a positive integer (S11), or one per unit (S33). */
  readonly cost?: Cost | Resolver<Request, Cost> | undefined;
  /**
   * The route's own limit, such as `['5/1m', '100/1d']`. A limit for the name of this route in the limiter's `limits`,
   * or by `adjust()`, replaces it. All methods applies as well.
   * @default the limiter's limit for the route
   */
  readonly limits?: LimitInput | undefined;
  /** Stores outcomes under their idempotency keys. Requires `idempotent`. */
  readonly idempotency?: GateOptions<Request>['idempotency'];
  /** Reads key, scope and fingerprint. False: this route ignores idempotency keys. */
  readonly idempotent?: false | GateOptions<Request>['idempotent'];
  /** Whether a request of this route without an idempotency key is refused with 400 (I1). */
  readonly requireKey?: boolean | undefined;
}

/** The options of a gate for one route. */
export interface RouteGateOptions<Request> extends GateOptions<Request> {
  /** The route's own limit, checked. */
  readonly limits?: Limit | undefined;
}

const OTHERS = [
  'onNoAccount',
  'finalCost',
  'providerAnswers',
  'cooldown',
  'limits',
  'idempotency',
  'requireKey',
  'rejection',
  'answer',
];
/** The names of the options of a route. */
export const ROUTE_OPTIONS: readonly string[] = [...RESOLVERS, ...OTHERS];

/**
 * Checks what can be checked without the gate.
 * @returns the route's own limit
 * @throws OptionError, LimitError, CostError
 */
export function checkRouteOptions(options: RouteOptions<never>): Limit | undefined {
  checkOptions(options, ROUTE_OPTIONS, 'route options');
  const { cost, limits } = options;
  if (cost !== undefined && typeof cost !== 'function') checkCosts(cost);
  return limits === undefined ? undefined : parseRouteLimits(limits, 'route options.limits');
}

/**
 * @returns the options of a gate for one route
 * @throws OptionError, LimitError, CostError
 */
export function withRoute<Request>(
  gate: RouteGateOptions<Request>,
  given: RouteOptions<Request>,
): RouteGateOptions<Request> {
  const ownLimits = checkRouteOptions(given);
  const { route, cost, lane, limits: _, idempotent, requireKey, ...others } = given;
  const replaced = {
    ...others,
    route: typeof route === 'string' ? () => route : route,
    cost: cost === undefined || typeof cost === 'function' ? cost : () => cost,
    lane: typeof lane === 'string' ? () => lane : lane,
    limits: ownLimits,
    idempotent: idempotent === false ? ignoreKey : idempotent,
    // A gate that requires keys cannot require one that its route ignores.
    requireKey: requireKey === undefined && idempotent === false ? false : requireKey,
  };
  const all = { ...gate };
  for (const [name, value] of Object.entries(replaced)) if (value !== undefined) Object.assign(all, { [name]: value });
  return all.idempotency === undefined && idempotent === false ? { ...all, idempotent: undefined } : all;
}

function ignoreKey(): undefined {}
