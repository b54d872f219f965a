import { checkInteger, checkOptions } from '../base/options.ts';
import { inSlices } from '../base/slices.ts';
import { type AdjustmentEntry, targetKey } from '../core/adjustment.ts';
import { checkTarget } from './change.ts';
import type { AdjustmentStore } from './ports.ts';
import type { HistoryQuery } from './shared-limits.ts';

const PAGE = 500;
const MAX_LIMIT = 1_000;
/** A store keeps about 10,000. One with more must not be read to its end for a limit that was hardly changed. */
const MAX_LOOKED_AT = 20_000;

/**
 * Returns changes, the newest first.
 * @throws OptionError, and the store's errors
 */
export async function queryHistory(
  store: Pick<AdjustmentStore, 'history'>,
  query: HistoryQuery = {},
): Promise<readonly AdjustmentEntry[]> {
  checkOptions(query, ['before', 'limit', 'target'], 'query');
  const { before, limit = 100, target } = query;
  if (before !== undefined) checkInteger('before', before, 1);
  checkInteger('limit', limit, 1, MAX_LIMIT);
  const key = target === undefined ? undefined : checkTarget(target);
  const found: AdjustmentEntry[] = [];
  let lookedAt = 0;
  for (let next = before; ; ) {
    const page = await store.history(next, key === undefined ? limit - found.length : PAGE);
    const isWanted = ({ limits }: AdjustmentEntry): boolean => limits.some((each) => targetKey(each.target) === key);
    // An entry can contain a hundred limits.
    await inSlices(page, (entry) => {
      if (key === undefined || isWanted(entry)) found.push(entry);
    });
    lookedAt += page.length;
    next = page.at(-1)?.version;
    if (found.length >= limit || next === undefined || lookedAt >= MAX_LOOKED_AT) return found.slice(0, limit);
  }
}
