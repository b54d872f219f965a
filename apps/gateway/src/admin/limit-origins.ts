import { formatWindow } from 'headgate';
import type { Limit, LimitName } from 'headgate/limits';
import type { LimitSource, SharedLimits } from 'headgate/shared-limits';
import type { Account } from '../config/schema.ts';

export const LAYERS = ['account', 'provider', 'plan', 'default'] as const;
/** Where a limit comes from: the limits of a group are a layer beneath its account. */
export const ORIGINS = [...LAYERS, 'group'] as const;

/** A limit of a layer. */
export interface LimitOfLayer {
  readonly from: (typeof ORIGINS)[number];
  /** Whether an operator set it. */
  readonly adjusted: boolean;
  /** Windows such as `60/1m`. */
  readonly windows: string[];
}

/** The layer that a limit comes from, and the limits that it hides. */
export interface LimitOrigin extends LimitOfLayer {
  readonly limit: LimitName;
  readonly hides: LimitOfLayer[];
}

/** The layer that each of an account's limits comes from. A limit that no layer sets is not listed. */
export function originsOf(limits: SharedLimits, { id, provider, plan }: Account, route: string): LimitOrigin[] {
  return limits
    .explain({ account: id, route, provider, plan })
    .flatMap(({ limit, applies, hides }) =>
      applies === undefined ? [] : [{ limit, ...limitOf(applies), hides: hides.map(limitOf) }],
    );
}

/** Windows such as `60/1m`. */
export function textsOf(limit: Limit): string[] {
  return limit.map(formatWindow);
}

function limitOf({ layer, windows, adjustment }: LimitSource): LimitOfLayer {
  // A route of the config declares no limit itself.
  return { from: layer as LimitOfLayer['from'], adjusted: adjustment !== undefined, windows: textsOf(windows) };
}
