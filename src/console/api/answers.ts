/** The answers of the Admin API, as the schemas of the gateway say. */
import type { LimitPreview as PreviewedLimits } from '../../gateway/admin/limit-schemas.ts';
import type { Instance as ListedInstance } from '../../gateway/admin/operations/limits.ts';

export type { Limit, LimitChanged, LimitEntry } from '../../gateway/admin/limit-schemas.ts';
export type { Key, Status } from '../../gateway/admin/operations/status.ts';
export type { Second, Top } from '../../gateway/admin/operations/traffic.ts';

/** A gateway of another version may leave out what a change does to the accounts of now. */
export type LimitPreview = PreviewedLimits & {
  readonly accounts?: { readonly affected: number };
  readonly now?: readonly {
    readonly account: string;
    readonly route: string;
    readonly used: number;
    readonly max: number;
    readonly wouldReject: boolean;
  }[];
};

/** A process with the same store. A program with the library says less than a gateway. */
export type Instance = ListedInstance & {
  readonly version?: string | null;
  readonly startedAt?: string | null;
  readonly state?: 'serving' | 'draining' | null;
  readonly breaker?: 'closed' | 'open' | 'half-open' | null;
  readonly decisionsPerSecond?: number | null;
};
