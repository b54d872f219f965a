import type { AdjustTarget, LayeredLimits, LimitSet } from 'headgate/limits';
import { type Adjustment, targetKey } from 'headgate/stores';
import { getOrCreate } from '../base/get-or-create.ts';
import { inSlices } from '../base/slices.ts';
import { limitsOf } from '../config/limits.ts';
import type { Config } from '../config/schema.ts';
import { mergeInSlices, sortInSlices, withPrefix } from './sort-in-slices.ts';

/** A limit that the config contains or an operator set. */
export interface ListedLimit {
  /** Its `targetKey`, by which lists are sorted. */
  readonly key: string;
  readonly target: AdjustTarget;
  readonly adjustment: Adjustment | undefined;
}

/** Selects the limits of a list. */
export interface LimitFilter {
  readonly layer?: 'default' | 'account' | 'provider' | 'plan' | undefined;
  readonly name?: string | undefined;
  /** Only limits that operators set. */
  readonly adjusted?: boolean | undefined;
}

type SortedLimits = readonly ListedLimit[];

const layers = new WeakMap<Config, LayeredLimits>();
// There may be 100,000 limits. They are sorted once per config and once per change, not once per page.
const ofConfigs = new WeakMap<LayeredLimits, Promise<SortedLimits>>();
const ofOperators = new WeakMap<readonly Adjustment[], Promise<SortedLimits>>();
const ofBoth = new WeakMap<readonly Adjustment[], WeakMap<LayeredLimits, Promise<SortedLimits>>>();

/** The limits of a config, the same object each time. */
export function layersOfConfig(config: Config): LayeredLimits {
  return getOrCreate(layers, config, () => limitsOf(config));
}

/**
 * The limits of a filter, by layer and name. The work for the first page of a config, or after a change, is done in
 * slices. The details of a limit are computed only for the page that shows it.
 * @param limits the same object as long as it is the same config
 * @param adjustments the same list as long as nothing changes
 */
export async function listLimits(
  limits: LayeredLimits,
  adjustments: readonly Adjustment[],
  { layer, name, adjusted }: LimitFilter = {},
): Promise<SortedLimits> {
  const list = adjusted === true ? await adjustedLimits(adjustments) : await allLimits(limits, adjustments);
  if (layer === undefined && name === undefined) return list;
  return prefixesOf(layer, name).flatMap((prefix) => withPrefix(list, prefix, keyOf));
}

function allLimits(limits: LayeredLimits, adjustments: readonly Adjustment[]): Promise<SortedLimits> {
  const known = getOrCreate(ofBoth, adjustments, () => new WeakMap<LayeredLimits, Promise<SortedLimits>>());
  return getOrCreate(known, limits, async () => {
    const [base, adjusted] = [await configuredLimits(limits), await adjustedLimits(adjustments)];
    if (adjusted.length === 0) return base;
    const both: ListedLimit[] = [];
    // A limit of the config that an operator adjusted is in both lists. The operator's comes first.
    await inSlices(await mergeInSlices(base, adjusted, keyOf), (listed) => {
      if (listed.key !== both.at(-1)?.key) both.push(listed);
    });
    return both;
  });
}

function configuredLimits(limits: LayeredLimits): Promise<SortedLimits> {
  return getOrCreate(ofConfigs, limits, () =>
    sortedBy(targetsIn(limits), (target) => ({ key: targetKey(target), target, adjustment: undefined })),
  );
}

function adjustedLimits(adjustments: readonly Adjustment[]): Promise<SortedLimits> {
  return getOrCreate(ofOperators, adjustments, () =>
    sortedBy(adjustments, (adjustment) => {
      const { target } = adjustment;
      return { key: targetKey(target), target, adjustment };
    }),
  );
}

async function sortedBy<Item>(items: Iterable<Item>, listed: (item: Item) => ListedLimit): Promise<SortedLimits> {
  const list: ListedLimit[] = [];
  await inSlices(items, (item) => list.push(listed(item)));
  return sortInSlices(list, keyOf);
}

function keyOf({ key }: ListedLimit): string {
  return key;
}

/** The prefixes of the keys that a filter selects. The default layer's name is empty. */
function prefixesOf(layer: LimitFilter['layer'], name: string | undefined): string[] {
  if (name === undefined) return [`["${layer}",`];
  const named = (['account', 'plan', 'provider'] as const).filter((each) => layer === undefined || layer === each);
  return named.map((each) => JSON.stringify([each, name]).slice(0, -1));
}

function* targetsIn(limits: LayeredLimits): Generator<AdjustTarget> {
  const { default: common = {}, plans = {}, providers = {}, accounts = {} } = limits;
  yield* targetsOf({}, common);
  for (const [layer, sets] of Object.entries({ plan: plans, provider: providers, account: accounts })) {
    for (const name of Object.keys(sets)) yield* targetsOf({ [layer]: name }, sets[name] as LimitSet);
  }
}

function* targetsOf(layer: AdjustTarget, { allMethods, routes = {} }: LimitSet): Generator<AdjustTarget> {
  if (allMethods !== undefined) yield layer;
  for (const route of Object.keys(routes)) yield { ...layer, route };
}
