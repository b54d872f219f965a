import type { Status } from './api/answers.ts';
import { countText, spanText } from './parts/format.ts';
import { Notice } from './parts/notice.tsx';

/** Warnings that an operator must see on every page. */
export function Banners({ status: { state, store, limits, workers } }: { status: Status }) {
  const silent = workers?.missing ?? [];
  return (
    <>
      {silent.length > 0 && (
        <Notice kind="bad">
          {silent.length === 1 ? 'A worker does' : 'Workers do'} not answer: {silent.join(', ')}. Figures of this
          gateway do not cover {silent.length === 1 ? 'it' : 'them'}.
        </Notice>
      )}
      {state === 'draining' && (
        <Notice kind="care">
          This gateway is draining: <code>/readyz</code> says 503, and requests are served on.
        </Notice>
      )}
      {store.health === 'degraded' && (
        <Notice kind="bad">
          The store does not answer: decisions are degraded, by the failure policy of each limit.
        </Notice>
      )}
      {limits.source === 'kept' && (
        <Notice kind="care">
          The adjustments could not be read for {spanText(limits.ageMs ?? 0)}. The last known ones apply.
        </Notice>
      )}
      {limits.source === 'file' && (
        <Notice kind="care">The adjustments were never read. Those of the kept file apply.</Notice>
      )}
      {limits.source === 'base' && (
        <Notice kind="care">The adjustments were never read. The limits of the config apply.</Notice>
      )}
      {limits.unusable > 0 && (
        <Notice kind="care">
          {countText(limits.unusable, 'adjustment')} cannot be used: a newer version wrote it, or the config has no such
          name.
        </Notice>
      )}
    </>
  );
}
