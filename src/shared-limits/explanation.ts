import { type Adjustment, type TargetLayer, targetKey } from '../core/adjustment.ts';
import type { Limit, LimitName } from '../core/limit.ts';
import { groupOf } from '../limits/groups.ts';
import { layerOfRoute } from '../limits/layer-input.ts';
import { type Layer, limitOf } from '../limits/layers.ts';
import type { Subject } from '../limits/window-set-source.ts';
import type { WindowSets } from '../limits/window-sets.ts';

/** A limit, and its layer. */
export interface LimitSource {
  /** `route`: the limit was declared with its route. `group`: it is the limit of a group, whose account was asked for. */
  readonly layer: TargetLayer['layer'] | 'route' | 'group';
  /** Which account, provider, plan or group; '' of the default layer and of a route. */
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
  const { limits, ...all } = subject;
  const defaults = windowSets.defaultLayer(subject);
  const group = windowSets.groupLayer(subject.account, defaults);
  // Plans and providers do not change the limits of a group.
  const names = group === undefined ? all : { account: subject.account };
  return (['route', 'all-methods'] as const).map((limit) => {
    // Without a route, `sourcesOf` would return the sources of All methods.
    if (limit === 'route' && subject.route === undefined) return { limit, applies: undefined, hides: [] };
    const route = limit === 'route' ? subject.route : undefined;
    const sources = sourcesOf({ ...names, route }, windowSets, group ?? defaults, adjustments, group !== undefined);
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
 * @param defaults the default layer, undefined if it is not known; or the limits of the group whose account it is
 */
export function sourcesOf(
  limit: LimitInLayers,
  windowSets: WindowSets,
  defaults: Layer | undefined,
  adjustments: ReadonlyMap<string, Adjustment>,
  isGroup = false,
): LimitSource[] {
  const { account = '', route } = limit;
  const named = (['account', 'provider', 'plan'] as const).flatMap((layer) => {
    const name = limit[layer];
    return name === undefined ? [] : [{ layer, name, limits: windowSets.layer({ layer, name }) }];
  });
  const base = isGroup
    ? { layer: 'group' as const, name: groupOf(account) as string, limits: defaults }
    : { layer: 'default' as const, name: '', limits: defaults };
  return [...named, base].flatMap(({ layer, name, limits }) => {
    const target = { ...(layer === 'default' ? {} : { [layer]: name }), route };
    const adjustment = layer === 'group' ? undefined : adjustments.get(targetKey(target));
    const windows = limitOf(limits?.unadjusted, { route });
    return [
      ...(adjustment === undefined ? [] : [{ layer, name, windows: adjustment.windows, adjustment }]),
      ...(windows === undefined ? [] : [{ layer, name, windows, adjustment: undefined }]),
    ];
  });
}
