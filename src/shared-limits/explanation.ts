import { type Adjustment, type TargetLayer, targetKey } from '../core/adjustment.ts';
import type { Limit, LimitName } from '../core/limit.ts';
import { type Layer, layerOfRoute, limitOf } from '../limits/layers.ts';
import type { Subject } from '../limits/window-set-source.ts';
import type { WindowSets } from '../limits/window-sets.ts';

/** A limit, and its layer. */
export interface LimitSource {
  /** `route`: the limit was declared with its route. */
  readonly layer: TargetLayer['layer'] | 'route';
  /** Which account, provider or plan; '' of the default layer and of a route. */
  readonly name: string;
  readonly windows: Limit;
  /** The adjustment that it is; undefined if the limit comes from the base. */
  readonly adjustment: Adjustment | undefined;
}

/** Where one limit of a subject comes from. */
export interface LimitOrigin {
  readonly limit: LimitName;
  /** The limit that applies: the most specific layer's. Undefined if no layer sets it. */
  readonly applies: LimitSource | undefined;
  /** The layers that it hides, the most specific first. */
  readonly hides: readonly LimitSource[];
}

/** One limit, and the layers that it can come from. */
type LimitInLayers = { readonly [Name in 'account' | 'provider' | 'plan' | 'route']?: string | undefined };

/** @param adjustments those that apply now, by `targetKey` */
export function explainLimits(
  subject: Subject,
  windowSets: WindowSets,
  adjustments: ReadonlyMap<string, Adjustment>,
): readonly LimitOrigin[] {
  const { limits, ...names } = subject;
  const defaults = windowSets.defaultLayer(subject);
  return (['route', 'all-methods'] as const).map((limit) => {
    // Without a route, `sourcesOf` would return the sources of All methods.
    if (limit === 'route' && subject.route === undefined) return { limit, applies: undefined, hides: [] };
    const route = limit === 'route' ? subject.route : undefined;
    const sources = sourcesOf({ ...names, route }, windowSets, defaults, adjustments);
    if (route !== undefined && limits !== undefined) {
      const windows = layerOfRoute(limits).routeLimit(route) as Limit;
      sources.push({ layer: 'route', name: '', windows, adjustment: undefined });
    }
    return { limit, applies: sources[0], hides: sources.slice(1) };
  });
}

/**
 * Where a limit can come from, the most specific layer first. An adjustment comes before the limit of the base.
 * @param limit without `route` it is All methods
 * @param defaults undefined if the default layer is not known
 */
export function sourcesOf(
  limit: LimitInLayers,
  windowSets: WindowSets,
  defaults: Layer | undefined,
  adjustments: ReadonlyMap<string, Adjustment>,
): LimitSource[] {
  const { route } = limit;
  const named = (['account', 'provider', 'plan'] as const).flatMap((layer) => {
    const name = limit[layer];
    return name === undefined ? [] : [{ layer, name, limits: windowSets.layer({ layer, name }) }];
  });
  return [...named, { layer: 'default' as const, name: '', limits: defaults }].flatMap(({ layer, name, limits }) => {
    const adjustment = adjustments.get(targetKey({ ...(layer === 'default' ? {} : { [layer]: name }), route }));
    const windows = limitOf(limits?.unadjusted, { route });
    return [
      ...(adjustment === undefined ? [] : [{ layer, name, windows: adjustment.windows, adjustment }]),
      ...(windows === undefined ? [] : [{ layer, name, windows, adjustment: undefined }]),
    ];
  });
}
