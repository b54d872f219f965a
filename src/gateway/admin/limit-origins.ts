import { formatWindow, type LimitInput, type LimitName, parseLimit } from '../../core/limit.ts';
import type { LimitSet } from '../../limits/layers.ts';
import { limitsOf } from '../config/limits.ts';
import type { Account, Config } from '../config/schema.ts';

export const LAYERS = ['account', 'provider', 'plan', 'default'] as const;
export type LayerName = (typeof LAYERS)[number];

/** A limit of a layer. */
export interface LimitOfLayer {
  readonly from: LayerName;
  /** Windows such as `60/1m`. */
  readonly windows: readonly string[];
}

/** Where a limit comes from, and the limits of less specific layers that it hides. */
export interface LimitOrigin extends LimitOfLayer {
  readonly limit: LimitName;
  readonly hides: readonly LimitOfLayer[];
}

/** Where the limits of an account come from. A limit that no layer has is not listed. */
export function originsOf(config: Config, account: Account, route: string | undefined): LimitOrigin[] {
  const layers = layersOf(config, account);
  const found = [
    ...(route === undefined ? [] : [originIn(layers, 'route', (set) => ownValue(set.routes, route))]),
    originIn(layers, 'all-methods', ({ allMethods }) =>
      allMethods !== undefined && 'windows' in allMethods ? allMethods.windows : allMethods,
    ),
  ];
  return found.filter((origin) => origin !== undefined);
}

type NamedLayer = readonly [name: LayerName, set: LimitSet | undefined];

/** The layers that an account has, the most specific first. */
function layersOf(config: Config, { id, provider, plan }: Account): NamedLayer[] {
  const limits = limitsOf(config);
  return [
    ['account', ownValue(limits.accounts, id)],
    ['provider', ownValue(limits.providers, provider)],
    ['plan', ownValue(limits.plans, plan)],
    ['default', limits.default],
  ];
}

function originIn(
  layers: readonly NamedLayer[],
  limit: LimitName,
  read: (set: LimitSet) => LimitInput | undefined,
): LimitOrigin | undefined {
  const [first, ...hides] = layers.flatMap(([from, set]) => {
    const input = set && read(set);
    return input === undefined ? [] : [{ from, windows: parseLimit(input).map(formatWindow) }];
  });
  return first && { limit, ...first, hides };
}

/** An account may be called `__proto__`. */
function ownValue<Value>(values: Readonly<Record<string, Value>> | undefined, name: string | undefined) {
  return values !== undefined && name !== undefined && Object.hasOwn(values, name) ? values[name] : undefined;
}
