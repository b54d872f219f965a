import { useEffect } from 'preact/hooks';
import type { LimitEntry } from '../api/answers.ts';
import { ask } from '../api/client.ts';
import { usePolled } from '../api/polled.ts';
import { momentText, windowsText } from '../parts/format.ts';
import { ErrorNotice } from '../parts/notice.tsx';
import { Pager, usePages } from '../parts/pager.tsx';
import { type Target, targetText } from '../parts/target.ts';
import { TargetName } from '../parts/target-name.tsx';
import { Wide } from '../parts/wide.tsx';
import { href } from '../route.ts';
import { may } from '../session.ts';
import type { Beginning } from './draft.ts';

const EVERY_MS = 5_000;
/** For the changes of one limit the gateway reads the whole history. */
const OF_ONE_EVERY_MS = 60_000;
const PER_PAGE = 50;

interface HistoryPage {
  readonly entries: readonly LimitEntry[];
  readonly next: number | null;
}

/** Changes of limits: the operator, the time and the reason. */
export function History({
  of,
  changes,
  onOpen,
}: {
  /** Only the changes of this limit; without any name, the changes of every limit. */
  of: Target;
  /** Number of the operator's changes of limits: each change makes the history read at once. */
  changes: number;
  onOpen: (target: Target, beginning: Beginning) => void;
}) {
  const key = JSON.stringify(of);
  const pages = usePages(key);
  const isOfOne = Object.keys(of).length > 0;
  const everyMs = isOfOne ? OF_ONE_EVERY_MS : EVERY_MS;
  const { value, error, refresh } = usePolled(`${key} ${pages.cursor}`, everyMs, (signal) =>
    ask<HistoryPage>('GET', 'v1/limits/history', {
      query: { ...of, limit: PER_PAGE, before: pages.cursor },
      signal,
    }),
  );
  useEffect(() => {
    if (changes > 0) refresh();
  }, [changes]);
  return (
    <>
      {isOfOne && (
        <p>
          Only {targetText(of)}. <a href={href('limits', 'history')}>Every change</a>
        </p>
      )}
      <ErrorNotice error={error} />
      {value?.entries.length === 0 && <p class="soft">No limit was changed yet.</p>}
      {value && value.entries.length > 0 && <HistoryTable entries={value.entries} onOpen={onOpen} />}
      <Pager pages={pages} next={value?.next} names={['Newer changes', 'Older changes']} />
    </>
  );
}

function HistoryTable({
  entries,
  onOpen,
}: {
  entries: readonly LimitEntry[];
  onOpen: (target: Target, beginning: Beginning) => void;
}) {
  const isOperator = may('operator');
  const rows = entries.flatMap(({ changes, ...entry }) => changes.map((change) => ({ ...entry, ...change })));
  return (
    <Wide label="History">
      <table>
        <thead>
          <tr>
            <th>Change</th>
            <th>When</th>
            <th>By, reason</th>
            <th>Limit</th>
            <th>Before</th>
            <th>After</th>
            <th>Ends</th>
            {isOperator && <th>Actions</th>}
          </tr>
        </thead>
        <tbody>
          {rows.map(({ version, at, by, reason, source, target, old, new: set, until }) => {
            const name = targetText(target);
            return (
              <tr key={`${version} ${name}`}>
                <td>{version}</td>
                <td>{momentText(at)}</td>
                <td>
                  {source === 'expiry' ? <span class="badge">ended</span> : by} <span class="soft">{reason}</span>
                </td>
                <td>
                  <TargetName target={target} />
                </td>
                <td>{setText(old)}</td>
                <td>{setText(set)}</td>
                <td>{set && (until === null ? 'never' : momentText(until))}</td>
                {isOperator && (
                  <td>
                    <button
                      type="button"
                      class="quiet"
                      aria-label={`Put this back: change ${version}, ${name}`}
                      onClick={() => onOpen(target, old)}
                    >
                      Put this back
                    </button>
                  </td>
                )}
              </tr>
            );
          })}
        </tbody>
      </table>
    </Wide>
  );
}

function setText(windows: readonly string[] | null): string {
  return windows === null ? 'as in the config' : windowsText(windows);
}
