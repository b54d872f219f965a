import { formatDuration } from 'headgate';
import type { JSX } from 'preact';
import type { PreviewedWindow } from '../../domain/limit-preview.ts';

/** The windows of a limit: what is used of each, and when it ends. */
export const WindowBars = ({ windows }: { readonly windows: readonly PreviewedWindow[] }): JSX.Element =>
  windows.length === 0 ? (
    <p>Requests are not limited by it.</p>
  ) : (
    <ul class="bars">
      {windows.map(({ max, durationMs, used, resetMs, rejects }) => {
        const label = `${used} of ${max} per ${formatDuration(durationMs)}`;
        return (
          <li key={durationMs}>
            <p class="what">
              <span class="title">{label}</span>
              {rejects ? <span class="badge expired">Rejects now</span> : null}
              <span class="soft">{resetMs === 0 ? 'not active' : `ends in ${secondsOf(resetMs)} s`}</span>
            </p>
            <progress aria-label={label} value={Math.min(used, max)} max={Math.max(max, 1)} />
          </li>
        );
      })}
    </ul>
  );

const secondsOf = (ms: number): number => Math.ceil(ms / 1_000);
