import { parseLimit } from 'headgate';
import { layerOf, placeOfTarget } from 'headgate/internal';
import type { AdjustTarget, LayeredLimits, LimitSet } from 'headgate/limits';
import type { Adjustment, AllMethodsScope } from 'headgate/stores';
import { getOrCreate } from '../base/get-or-create.ts';
import { inSlices } from '../base/slices.ts';
import type { AdminContext } from './context.ts';
import { type ListedLimit, layersOfConfig, listLimits } from './limit-index.ts';
import { type ShownLimit, shownLimit } from './limit-list.ts';
import { textsOf } from './limit-origins.ts';
import { MAX_CHANGES } from './limit-schemas.ts';

/** The changes that put a candidate's limits in force. */
export interface Promotion {
  /** At most as many as one batch accepts. */
  readonly changes: readonly PromotedLimit[];
  /** Number of further changes. */
  readonly left: number;
  /** Differences that adjustments cannot express. */
  readonly obstacles: readonly string[];
}

/** A change of one limit, as a batch takes it, and what applies now. */
export interface PromotedLimit {
  readonly target: AdjustTarget;
  readonly before: string[] | null;
  /** Null: the adjustment is reset. */
  readonly windows: string[] | null;
  /** The current version of the adjustment. */
  readonly version: number;
}

const MAX_OBSTACLES = 20;
const NONE: readonly Adjustment[] = [];

/** Compares a candidate with the limits in force, target by target, in slices: there may be 100,000 of them. */
export async function promotionOf(
  { config, accounts, sharedLimits }: Pick<AdminContext, 'config' | 'accounts' | 'sharedLimits'>,
  candidate: LayeredLimits,
): Promise<Promotion> {
  const current = layersOfConfig(config());
  const all = new Map<string, ListedLimit>();
  // A limit of both lists appears once, with the operator's value.
  for (const list of [await listLimits(current, sharedLimits.list()), await listLimits(candidate, NONE)])
    await inSlices(list, (listed) => getOrCreate(all, listed.key, () => listed));
  const changes: PromotedLimit[] = [];
  const obstacles: string[] = [];
  let left = 0;
  let hidden = 0;
  const object = (text: string): void => {
    if (obstacles.length < MAX_OBSTACLES) obstacles.push(text);
    else hidden++;
  };
  const compare = ({ target, adjustment }: ListedLimit): void => {
    const now = shownLimit(current, { target, adjustment });
    const wanted = shownLimit(candidate, { target, adjustment: undefined }).base;
    const windows = wanted ?? withoutLimit(candidate, now, accountLayers(accounts(), target));
    if (windows === undefined) {
      object(`${placeOfTarget(target)}: the candidate has no such limit, and an adjustment cannot remove it.`);
      return;
    }
    const [scopeNow, scope] = [scopeOf(current, target), scopeOf(candidate, target)];
    if (wanted !== null && wanted.length > 0 && scopeNow !== scope)
      object(`${placeOfTarget(target)}: an adjustment keeps the scope "${scopeNow}", the candidate has "${scope}".`);
    if (isSame(windows, now)) return;
    if (changes.length < MAX_CHANGES)
      changes.push({ target, before: now.effective, windows, version: now.adjusted?.version ?? 0 });
    else left++;
  };
  await inSlices(all.values(), compare);
  if (JSON.stringify(current.groups ?? {}) !== JSON.stringify(candidate.groups ?? {}))
    object('limits.groups: the candidate has other limits of groups, and an adjustment cannot change them.');
  if (textOf(current.lanes) !== textOf(candidate.lanes))
    object('limits.lanes: the candidate has other lanes, and an adjustment cannot change them.');
  if (hidden > 0) obstacles.push(`${hidden} more like these.`);
  return { changes, left, obstacles };
}

const textOf = (lanes: LayeredLimits['lanes'] = {}): string => JSON.stringify(Object.entries(lanes).sort());

/** The layers beneath a target's layer, the most specific first; undefined if they differ from account to account. */
type Beneath = readonly AdjustTarget[] | undefined;

function accountLayers(
  accounts: ReturnType<AdminContext['accounts']>,
  { account: id, provider, plan }: AdjustTarget,
): Beneath {
  if (id !== undefined) {
    const account = accounts.find(id);
    return [
      ...(account?.provider === undefined ? [] : [{ provider: account.provider }]),
      ...(account?.plan === undefined ? [] : [{ plan: account.plan }]),
      {},
    ];
  }
  if (plan !== undefined) return [{}];
  return provider === undefined ? [] : undefined;
}

/**
 * The windows of an adjustment that are the same as no limit in its layer; null to reset an adjustment. Undefined if no
 * such windows exist, because the layers beneath differ.
 */
function withoutLimit(candidate: LayeredLimits, { target, base, adjusted }: ShownLimit, beneath: Beneath) {
  // Only an operator set it.
  if (base === null) return adjusted === null ? [] : null;
  const { route } = target;
  const windowsOf = (layer: AdjustTarget): string[] | null =>
    shownLimit(candidate, { target: route === undefined ? layer : { ...layer, route }, adjustment: undefined }).base;
  // Only here, because there may be as many plans as targets.
  if (beneath === undefined && Object.keys(candidate.plans ?? {}).some((plan) => windowsOf({ plan }) !== null))
    return undefined;
  for (const layer of beneath ?? [{}]) {
    const windows = windowsOf(layer);
    if (windows !== null) return windows;
  }
  return [];
}

function isSame(windows: string[] | null, { effective, adjusted }: ShownLimit): boolean {
  if (windows === null) return adjusted === null;
  return effective !== null && sorted(windows) === sorted(effective);
}

function sorted(windows: readonly string[]): string {
  return textsOf(parseLimit(windows)).join();
}

/** The scope of the counters of an all-methods limit. A layer without a scope uses the default layer's scope. */
function scopeOf(limits: LayeredLimits, target: AdjustTarget): AllMethodsScope {
  if (target.route !== undefined) return 'route';
  const { layer, name } = layerOf(target);
  const sets = layer === 'default' ? undefined : limits[`${layer}s`];
  const own = sets !== undefined && Object.hasOwn(sets, name) ? ownScope(sets[name]) : undefined;
  return own ?? ownScope(limits.default) ?? 'route';
}

function ownScope({ allMethods }: LimitSet = {}): AllMethodsScope | undefined {
  return allMethods !== undefined && 'scope' in allMethods ? allMethods.scope : undefined;
}
