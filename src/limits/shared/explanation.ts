import { type Adjustment, type TargetLayer, targetKey } from '../../core/adjustment.ts';
import type { Limit, LimitName } from '../../core/limit.ts';
import { type Layer, layerOfRoute } from '../layers.ts';
import type { Plans, Subject } from '../plans.ts';

/** A limit, and the layer that has it. */
export interface LimitSource {
  /** `route`: the limit was declared with its route. */
  readonly layer: TargetLayer['layer'] | 'route';
  /** Which account, provider or plan; '' of the default layer and of a route. */
  readonly name: string;
  readonly windows: Limit;
  /** The adjustment that it is; undefined if the limit is that of the base. */
  readonly adjustment: Adjustment | undefined;
}

/** Where one limit of a subject comes from. */
export interface LimitOrigin {
  readonly limit: LimitName;
  /** What applies: the limit of the most specific layer that has it. Undefined if no layer has it. */
  readonly applies: LimitSource | undefined;
  /** What it hides, the most specific first. */
  readonly hides: readonly LimitSource[];
}

/** @param adjustments those that apply now, by `targetKey` */
export function explainLimits(
  subject: Subject,
  plans: Plans,
  adjustments: ReadonlyMap<string, Adjustment>,
): readonly LimitOrigin[] {
  const layers = layersOf(subject, plans);
  return (['route', 'all-methods'] as const).map((limit) => {
    const route = limit === 'route' ? subject.route : undefined;
    const sources = layers.flatMap((layer) => sourcesIn(layer, route, adjustments));
    if (route !== undefined && subject.limits !== undefined) {
      const windows = layerOfRoute(subject.limits).routeLimit(route) as Limit;
      sources.push({ layer: 'route', name: '', windows, adjustment: undefined });
    }
    return { limit, applies: sources[0], hides: sources.slice(1) };
  });
}

/** A layer that a subject's limits come from. */
interface LayerOfSubject extends TargetLayer {
  /** Undefined if it has no limits. */
  readonly limits: Layer | undefined;
}

/** The most specific first. */
function layersOf(subject: Subject, plans: Plans): readonly LayerOfSubject[] {
  const layers = (['account', 'provider', 'plan'] as const).flatMap((layer) => {
    const name = subject[layer];
    return name === undefined ? [] : [{ layer, name, limits: plans.layer({ layer, name }) }];
  });
  return [...layers, { layer: 'default', name: '', limits: plans.defaultLayer(subject) }];
}

/** An adjustment hides the limit of the base. */
function sourcesIn(
  { layer, name, limits }: LayerOfSubject,
  route: string | undefined,
  adjustments: ReadonlyMap<string, Adjustment>,
): LimitSource[] {
  const adjustment = adjustments.get(targetKey({ ...(layer === 'default' ? {} : { [layer]: name }), route }));
  const base = limits?.unadjusted;
  const windows = route === undefined ? base?.allMethods?.windows : base?.routeLimit(route);
  return [
    ...(adjustment === undefined ? [] : [{ layer, name, windows: adjustment.windows, adjustment }]),
    ...(windows === undefined ? [] : [{ layer, name, windows, adjustment: undefined }]),
  ];
}
