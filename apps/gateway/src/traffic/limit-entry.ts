import { formatWindow } from 'headgate';
import type { Limit } from 'headgate/limits';
import type { AdjustmentEntry } from 'headgate/stores';

/** A change of limits, as the history and the events show it. */
export function shownEntry({ version, at, by, reason, source, limits }: AdjustmentEntry) {
  return {
    version,
    at: new Date(at).toISOString(),
    by,
    reason: reason ?? null,
    source,
    changes: limits.map(({ target, from, to, until }) => ({
      target,
      old: textsOrNull(from),
      new: textsOrNull(to),
      until: until === undefined ? null : new Date(until).toISOString(),
    })),
  };
}

/** Windows such as `60/1m`; null if no limit is given. */
export function textsOrNull(limit: Limit | undefined): string[] | null {
  return limit === undefined ? null : limit.map(formatWindow);
}
