import { useEffect } from 'preact/hooks';
import type { GroupLimit, Limit } from '../api/answers.ts';
import { ask } from '../api/client.ts';
import { usePolled } from '../api/polled.ts';
import { ErrorNotice, Notice } from '../parts/notice.tsx';
import { Pager, usePages } from '../parts/pager.tsx';
import type { Target } from '../parts/target.ts';
import type { Beginning } from './draft.ts';
import type { LimitFilter } from './filter.tsx';
import { GroupTable } from './group-table.tsx';
import { LimitTable } from './limit-table.tsx';

const EVERY_MS = 5_000;

interface LimitPage {
  readonly durable: boolean;
  readonly limits: readonly Limit[];
  readonly groups: readonly GroupLimit[];
  readonly next: string | null;
}

/** The limits that fit a filter. */
export function LimitList({
  filter,
  changes,
  onOpen,
}: {
  filter: LimitFilter;
  /** Number of the operator's changes of limits: each change makes the list read at once. */
  changes: number;
  onOpen: (target: Target, beginning: Beginning) => void;
}) {
  const { layer, name, isAdjusted } = filter;
  const key = JSON.stringify([layer, name, isAdjusted]);
  const pages = usePages(key);
  const { cursor } = pages;
  const { value, error, refresh } = usePolled(`${key} ${cursor}`, EVERY_MS, (signal) => {
    const query = { layer: layer || undefined, name: name || undefined, adjusted: isAdjusted || undefined, cursor };
    return ask<LimitPage>('GET', 'v1/limits', { query, signal });
  });
  useEffect(() => {
    if (changes > 0) refresh();
  }, [changes]);
  return (
    <>
      {value?.durable === false && (
        <Notice kind="care">
          Changes end with the process: the store is in its memory, and the config has no <code>adjustments.file</code>.
        </Notice>
      )}
      <ErrorNotice error={error} />
      {value?.limits.length === 0 && <p class="soft">No limit fits this filter.</p>}
      {value && value.limits.length > 0 && <LimitTable limits={value.limits} onOpen={onOpen} />}
      <Pager pages={pages} next={value?.next} />
      {value && value.groups.length > 0 && <GroupTable limits={value.groups} />}
    </>
  );
}
