import { formatDuration } from 'headgate';
import type { JSX } from 'preact';
import type { PreviewedWindow } from '../../domain/limit-preview.ts';

/** The windows of a limit: the usage of each, and when it ends. */
export const WindowBars = ({ windows }: { readonly windows: readonly PreviewedWindow[] }): JSX.Element =>
  windows.length === 0 ? (
    <p>Requests are not limited by it.</p>
  ) : (
    <ul class="bars">
      {windows.map(({ max, durationMs, used, resetMs, rejects }) => {
        const label = `${used} of ${max} per ${formatDuration(durationMs)}`;
        return (
          <li class="window" key={durationMs}>
            <p class="what">
              <span class="title">{label}</span>
              {rejects ? <span class="badge expired">Rejects now</span> : null}
              <span class="soft">{resetMs === 0 ? 'not active' : `ends in ${durationText(resetMs)}`}</span>
            </p>
            <progress aria-label={label} value={Math.min(used, max)} max={Math.max(max, 1)} />
          </li>
        );
      })}
    </ul>
  );

/** A duration, in the largest unit that counts at least two. */
export function durationText(ms: number): string {
  const seconds = Math.ceil(ms / 1_000);
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7_200) return `${Math.ceil(seconds / 60)} min`;
  return `${Math.ceil(seconds / 3_600)} h`;
}
