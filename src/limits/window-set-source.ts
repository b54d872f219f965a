import type { MaybePromise } from '../base/maybe-promise.ts';
import type { LimitInput } from '../core/limit.ts';
import type { WindowSet } from '../core/window-set.ts';
import type { LayeredLimits, LayerInput } from './layer-input.ts';

/** The account and operation that a request is limited by. */
export interface Subject {
  /** Whose allowance the request uses. Any string. */
  readonly account: string;
  /**
   * The operation; by convention `POST /api/v1/emails`, never the raw URL. Any string. Optional if all limits are lists
   * of windows, which count all routes together (S34).
   */
  readonly route?: string | undefined;
  /** Selects the limits of a provider. By default, no provider's limits apply. */
  readonly provider?: string | undefined;
  /** Selects the limits of the customer's plan, such as `pro`. By default, no plan's limits apply. */
  readonly plan?: string | undefined;
  /**
   * A lane of `limits.lanes`, such as `bulk`: the request may use only a share of each max (S28). By default, it may use
   * all of it.
   */
  readonly lane?: string | undefined;
  /**
   * The route's own limit, such as `['5/1m']`, if it is declared with the route. A limit for this route in the
   * limiter's `limits`, or by `adjust()`, replaces it. All methods applies as well. Pass the same array each time: it
   * is checked once.
   * @throws LimitError, also if the list is empty
   */
  readonly limits?: LimitInput | undefined;
}

/**
 * Limits for every account, a list of windows or a set of limits; limits in layers; or a function that returns the
 * limits of a subject, or a promise of them.
 */
export type Limits = LayerInput | LayeredLimits<LayerInput> | ((subject: Subject) => MaybePromise<LayerInput>);

/** The fields of a subject that select a layer by its name. */
export const LAYER_FIELDS = ['plan', 'provider'] as const;
export type LayerField = (typeof LAYER_FIELDS)[number];

/** The routes that the limits of a subject name, and the window set of every other route. */
export interface NamedRoutes {
  readonly routes: readonly string[];
  readonly others: WindowSet;
}

/**
 * Knows the window set of each subject at any moment, as shared limits do. Equal limits give the same window set
 * object.
 */
export interface WindowSetSource {
  /**
   * Returns the window set that a request of the subject must fit now. Never waits. If the subject names a lane, so must
   * the window set: otherwise the limiter throws an UnknownLaneError.
   */
  windowSet(subject: Subject): WindowSet;
  /** Routes with their own limits. If given, the limiter warns of those that no request names. */
  readonly limitedRoutes?: readonly string[] | undefined;
  /**
   * Which of plan and provider the limits name, without adjustments. A gate needs a resolver for each, and the limiter
   * warns if no request has one.
   */
  readonly layerFields?: readonly ('plan' | 'provider')[] | undefined;
  /**
   * The lanes of the limits. If there are any, the limiter warns if no request names one. With an empty list, a gate may
   * have neither a `lane` nor, without `groups`, a resolver of groups.
   */
  readonly lanes?: readonly string[] | undefined;
  /**
   * Returns the routes that the limits of a subject name. Without it, `limiter.usage` shows `limitedRoutes`.
   * @param subject names no route
   */
  namedRoutes?(subject: Subject): MaybePromise<NamedRoutes>;
  /**
   * Names of the groups that the limits have (S31). A group is asked for as the subject whose account is its
   * `groupAccount()`, without plan and provider.
   * @default none: a request that names a group is an OptionError
   */
  readonly groups?: readonly string[] | undefined;
  /**
   * What windows may count beside requests, such as `tokens` (S33). A cost that names another unit is an error.
   * @default none
   */
  readonly units?: readonly string[] | undefined;
  /**
   * The longest duration of a window so far, in milliseconds. A block with a fresh start needs it.
   * @default 400 days
   */
  readonly longestMs?: number | undefined;
  /**
   * Whether a request must name its route.
   * @default true
   */
  readonly needsRoute?: boolean | undefined;
}

/** Whether these limits are a source of window sets. No set of limits contains a `windowSet`. */
export function isWindowSetSource(limits: Limits | WindowSetSource): limits is WindowSetSource {
  return typeof (limits as Partial<WindowSetSource> | undefined)?.windowSet === 'function';
}
