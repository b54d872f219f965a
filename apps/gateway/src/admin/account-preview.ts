import type { WindowStatus } from 'headgate';
import { peekUnits } from 'headgate/internal';
import type { LimitChange } from 'headgate/shared-limits';
import { createWindowSet, type WindowSet } from 'headgate/stores';
import { peekEach, rounded } from '../api/window-state.ts';
import { inSlices, nextTurn } from '../base/slices.ts';
import type { Account, Config } from '../config/schema.ts';
import type { SeenAccount } from '../traffic/top-accounts.ts';
import { type ChangedLimit, type ChangeOfLayer, changedLimits, changeOfLayer, isOf } from './changed-limits.ts';
import { allSeen, type CountedWorkers, NO_RATE, sumOfRates } from './combined-figures.ts';
import type { AdminContext } from './context.ts';

/** The effect that a change of limits would show on recently seen accounts. */
export interface AccountPreview {
  readonly accounts: { readonly affected: number };
  /**
   * The accounts with the most requests: first the accounts that would be rejected, then by how full their windows
   * would be.
   */
  readonly now: PreviewedAccount[];
  /** Only if the gateway has workers. */
  readonly workers?: CountedWorkers;
}

interface PreviewedAccount {
  readonly account: string;
  readonly route: string;
  /** Used part of the fullest window of the limits that change. */
  readonly used: number;
  readonly max: number;
  readonly wouldReject: boolean;
  /** Its requests at this gateway, on all routes. */
  readonly perMinute: number;
  /** Time until the first of the windows, if all were empty now, would be full at this rate; null if none would. */
  readonly fullAfterMs: number | null;
}

/** The limits of an account on a route that a change makes others. */
interface Effect {
  readonly route: string;
  readonly limits: readonly ChangedLimit[];
}

const MAX_PEEKED = 50;
const MINUTE_MS = 60_000;

/**
 * Says which accounts a change would affect, and which of them it would reject now. Peeks at their windows, and charges
 * nothing.
 * @throws the store's errors
 */
export async function previewAccounts(context: AdminContext, changes: readonly LimitChange[]): Promise<AccountPreview> {
  const { accounts, figures, store, sharedLimits } = context;
  const effectOf = createEffects(context, changes.map(changeOfLayer));
  const touched: { readonly account: Account; readonly effect: Effect }[] = [];
  // Each of these takes a slice: the caller's earlier work, and the list of seen accounts.
  await nextTurn();
  const { each, workers } = await figures('seen');
  await nextTurn();
  const all = allSeen(each);
  await nextTurn();
  await inSlices(all, (seen) => {
    const account = accounts().find(seen.account);
    const effect = account && effectOf(account, seen);
    if (account !== undefined && effect !== undefined) touched.push({ account, effect });
  });
  const planOf = createWindowSets();
  const busiest = touched.filter(({ effect }) => hasWindows(effect)).slice(0, MAX_PEEKED);
  const ids = busiest.map(({ account }) => account.id);
  const rates = sumOfRates((await figures('rates', ids)).each);
  const rateOf = new Map(ids.map((id, i) => [id, rates[i]]));
  const now = await peekEach(busiest, async ({ account: { id, provider, plan }, effect }) => {
    const { allMethodsScope } = sharedLimits.windowSet({ account: id, route: effect.route, provider, plan });
    const counting = planOf(effect, allMethodsScope);
    const statuses = await peekUnits(store.limits, id, effect.route, counting);
    const { accepted, rejected } = rateOf.get(id) ?? NO_RATE;
    const rate = accepted + rejected;
    const fullAfterMs = roomFor(effect, rate / MINUTE_MS);
    return { account: id, route: effect.route, ...fullest(effect, statuses), perMinute: rounded(rate), fullAfterMs };
  });
  return { accounts: { affected: touched.length }, now: now.sort(byUrgency), ...(workers && { workers }) };
}

/** Finds the effect of changes on an account; undefined if none of its limits changes. */
function createEffects({ config, sharedLimits }: AdminContext, changes: readonly ChangeOfLayer[]) {
  const hasOwn = ownLimits(config(), sharedLimits.list(), changes);
  // Accounts without their own limits share the limits of their provider and plan, so there are few different effects.
  const known = new Map<string, Effect | undefined>();
  const effectOn = ({ id, provider, plan }: Account, route: string, own: readonly ChangeOfLayer[]) => {
    const limits = changedLimits(sharedLimits.explain({ account: id, route, provider, plan }), own, route);
    return limits.length === 0 ? undefined : { route, limits };
  };
  return (account: Account, seen: SeenAccount): Effect | undefined => {
    const own = changes.filter((change) => isOf(account, change));
    if (own.length === 0) return undefined;
    const { id, provider, plan } = account;
    // The route of its last request comes first: its clients use it.
    for (const route of new Set([seen.route, ...own.flatMap((change) => change.route ?? [])])) {
      const key = JSON.stringify([hasOwn(id) ? id : null, provider, plan, route]);
      if (!known.has(key)) known.set(key, effectOn(account, route, own));
      const effect = known.get(key);
      if (effect !== undefined) return effect;
    }
    return undefined;
  };
}

/** Whether an account's own limits apply, or would apply. */
function ownLimits(
  config: Config,
  adjustments: ReturnType<AdminContext['sharedLimits']['list']>,
  changes: readonly ChangeOfLayer[],
): (id: string) => boolean {
  const { accounts } = config.limits;
  const adjusted = new Set([
    ...adjustments.flatMap(({ target }) => target.account ?? []),
    ...changes.flatMap(({ layer, name }) => (layer === 'account' ? [name] : [])),
  ]);
  return (id) => Object.hasOwn(accounts, id) || adjusted.has(id);
}

/**
 * Window sets that count the windows of limits. Their maxes are never reached: a window shows at most `max`, and an
 * account may already use more than the change would allow.
 */
function createWindowSets(): (effect: Effect, scope: WindowSet['allMethodsScope']) => WindowSet {
  const windowSets = new Map<Effect, WindowSet>();
  return (effect, scope) => {
    const known = windowSets.get(effect);
    if (known !== undefined) return known;
    const windowsOf = (name: ChangedLimit['limit']) =>
      effect.limits
        .filter(({ limit }) => limit === name)
        .flatMap(({ windows }) => windows.map((window) => ({ ...window, max: Number.MAX_SAFE_INTEGER })));
    const windowSet = createWindowSet(windowsOf('route'), windowsOf('all-methods'), scope);
    windowSets.set(effect, windowSet);
    return windowSet;
  };
}

function hasWindows({ limits }: Effect): boolean {
  return limits.some(({ windows }) => windows.length > 0);
}

/**
 * @param rate requests per millisecond
 * @returns how long empty windows accept this rate; null if they always do
 */
function roomFor({ limits }: Effect, rate: number): number | null {
  // Nobody knows at which rate other units are used.
  const windows = limits.flatMap((each) => each.windows).filter(({ unit }) => unit === undefined);
  const times = windows.flatMap(({ max, durationMs }) => (max < rate * durationMs ? max / rate : []));
  return times.length === 0 ? null : Math.round(Math.min(...times));
}

/** @param statuses of each window, as they are counted */
function fullest({ limits }: Effect, statuses: readonly WindowStatus[]) {
  const used = limits.flatMap(({ limit, windows }) =>
    windows.map(({ max, durationMs, unit }) => {
      const counted = statuses.find(
        (status) => status.limit === limit && status.durationMs === durationMs && status.unit === unit,
      ) as WindowStatus;
      return { used: counted.max - counted.remaining, max };
    }),
  );
  const [first] = used.sort((a, b) => fullnessOf(b) - fullnessOf(a));
  const { used: most, max } = first as (typeof used)[number];
  return { used: most, max, wouldReject: used.some((window) => window.used >= window.max) };
}

function byUrgency(a: PreviewedAccount, b: PreviewedAccount): number {
  return (
    Number(b.wouldReject) - Number(a.wouldReject) || fullnessOf(b) - fullnessOf(a) || (a.account < b.account ? -1 : 1)
  );
}

/** A window without any room is full, also if nothing was counted. */
function fullnessOf({ used, max }: Pick<PreviewedAccount, 'used' | 'max'>): number {
  return max === 0 ? Number.MAX_VALUE : used / max;
}
