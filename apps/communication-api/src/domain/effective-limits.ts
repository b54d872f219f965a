/** The layer that a limit comes from. Each layer overrides the layers before it. */
export type LimitSource = 'recommended' | 'application' | 'account';

/** The limits of one layer: the windows, such as `120/1m`, by route. Null is the limit that applies to every route. */
export type LimitLayer = ReadonlyMap<string | null, readonly string[]>;

/** A limit as it applies. Without windows, requests are not limited by it. */
export interface EffectiveLimit {
  readonly route: string | null;
  readonly windows: readonly string[];
  readonly source: LimitSource;
}

/**
 * The limit of each route, from the last layer that sets one.
 * @param layers the most specific one last
 * @param routes are in the result even if no layer limits them
 */
export function effectiveLimits(
  layers: readonly { readonly source: LimitSource; readonly limits: LimitLayer }[],
  routes: readonly string[],
): readonly EffectiveLimit[] {
  const names = new Set<string | null>([null, ...routes, ...layers.flatMap(({ limits }) => [...limits.keys()])]);
  return [...names].map((route) => {
    const found = layers.findLast(({ limits }) => limits.has(route));
    return { route, windows: found?.limits.get(route) ?? [], source: found?.source ?? 'recommended' };
  });
}
