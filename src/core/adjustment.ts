import { OptionError } from '../base/errors.ts';
import { checkOptions, placeIn } from '../base/options.ts';
import type { Limit } from './limit.ts';

/**
 * Which limit to adjust: an account's, a provider's, a customer plan's, or (if none is given) the default
 * limit. With `route`, the limit of that route; otherwise the limit for all routes.
 */
export interface AdjustTarget {
  readonly account?: string | undefined;
  readonly provider?: string | undefined;
  readonly plan?: string | undefined;
  readonly route?: string | undefined;
}

/** A limit that replaces one of the base, until it is reset or over. */
export interface Adjustment {
  readonly target: AdjustTarget;
  /** An empty list removes the limit. */
  readonly windows: Limit;
  /** Number of the change that set it. */
  readonly version: number;
  /** Who set it. */
  readonly by: string;
  readonly reason?: string | undefined;
  /** When it was set, in milliseconds since 1970 on the store's clock. */
  readonly at: number;
  /** When it is over, on the same clock. */
  readonly until?: number | undefined;
}

/**
 * The last change of a history. Two histories never end with the same change, because each change contains a random
 * `nonce`.
 */
export interface Head {
  /** Rises by one with each change. */
  readonly version: number;
  readonly nonce: string;
}

/** The effect of one change on one limit. */
export interface AdjustedLimit {
  readonly target: AdjustTarget;
  /** The adjustment's windows before; undefined if the limit was not adjusted. */
  readonly from: Limit | undefined;
  /** The adjustment's windows now; undefined if it was reset. */
  readonly to: Limit | undefined;
  readonly until?: number | undefined;
}

/** One change of the history. It changes all of its limits or none. */
export interface AdjustmentEntry extends Head {
  readonly at: number;
  readonly by: string;
  readonly reason?: string | undefined;
  /** `expiry`: the adjustments had reached their ends. */
  readonly source: 'change' | 'expiry';
  readonly limits: readonly AdjustedLimit[];
}

/** The whole content of a store. */
export interface AdjustmentState {
  readonly head: Head;
  readonly adjustments: readonly Adjustment[];
  /** The last entries of the history, at most {@link MAX_RECENT}, oldest first. The last entry belongs to `head`. */
  readonly recent: readonly AdjustmentEntry[];
}

/** Entries that a process remembers. By them it recognises a store that lost its last changes. */
export const MAX_RECENT = 1_000;

/** The names of a target beside its route. */
const TARGETS = ['account', 'provider', 'plan'] as const;
const FIELDS = [...TARGETS, 'route'];

/** The layer of a target, and which one of them. The default layer is unnamed. */
export interface TargetLayer {
  readonly layer: 'default' | (typeof TARGETS)[number];
  readonly name: string;
}

/** @throws OptionError if the target names several layers */
export function layerOf(target: AdjustTarget): TargetLayer {
  checkOptions(target, FIELDS, 'target');
  const layer = TARGETS.find((each) => target[each] !== undefined);
  if (layer === undefined) return { layer: 'default', name: '' };
  const another = TARGETS.findLast((each) => target[each] !== undefined);
  if (another !== layer)
    throw new OptionError('target', `${layer} and ${another}`, 'must name only one of account, provider and plan');
  return { layer, name: target[layer] as string };
}

/** The place of a target in `limits`, for messages. */
export function placeOfTarget(target: AdjustTarget): string {
  const { layer, name } = layerOf(target);
  const place = layer === 'default' ? layer : placeIn(`${layer}s`, name);
  return `limits.${place}.${target.route === undefined ? 'allMethods' : placeIn('routes', target.route)}`;
}

/** A text for each limit that can be adjusted. The texts of two different limits differ. */
export function targetKey(target: AdjustTarget): string {
  const { layer, name } = layerOf(target);
  return JSON.stringify(target.route === undefined ? [layer, name] : [layer, name, target.route]);
}

/** The adjustments after a change, by {@link targetKey}. */
export function applyEntry(adjustments: Map<string, Adjustment>, entry: AdjustmentEntry): void {
  const { version, by, reason, at } = entry;
  for (const { target, to: windows, until } of entry.limits) {
    if (windows === undefined) adjustments.delete(targetKey(target));
    else adjustments.set(targetKey(target), { target, windows, version, by, reason, at, until });
  }
}

/** The entries with one more, at most {@link MAX_RECENT}. */
export function withEntry(recent: readonly AdjustmentEntry[], entry: AdjustmentEntry): readonly AdjustmentEntry[] {
  return [...recent, entry].slice(-MAX_RECENT);
}

/** Whether two heads are the same change. */
export function isSameHead(one: Head | undefined, other: Head | undefined): boolean {
  return one?.version === other?.version && one?.nonce === other?.nonce;
}
