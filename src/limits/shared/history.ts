import { type AdjustmentEntry, targetKey } from '../../core/adjustment.ts';
import { checkInteger } from '../../core/options.ts';
import type { AdjustmentStore } from '../../core/ports.ts';
import { checkTarget } from './change.ts';
import type { HistoryQuery } from './shared-limits.ts';

const PAGE = 500;
const MAX_LIMIT = 1_000;

/**
 * Returns changes, the newest first.
 * @throws OptionError, and what the store throws
 */
export async function queryHistory(
  store: Pick<AdjustmentStore, 'history'>,
  { before, limit = 100, target }: HistoryQuery = {},
): Promise<readonly AdjustmentEntry[]> {
  if (before !== undefined) checkInteger('before', before, 1);
  checkInteger('limit', limit, 1, MAX_LIMIT);
  const key = target && checkTarget(target);
  const found: AdjustmentEntry[] = [];
  for (let next = before; ; ) {
    const page = await store.history(next, key === undefined ? limit - found.length : PAGE);
    const isWanted = ({ limits }: AdjustmentEntry): boolean => limits.some((each) => targetKey(each.target) === key);
    found.push(...(key === undefined ? page : page.filter(isWanted)));
    next = page.at(-1)?.version;
    if (found.length >= limit || next === undefined) return found.slice(0, limit);
  }
}
