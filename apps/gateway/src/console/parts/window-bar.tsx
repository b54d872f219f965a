import { limitName, numberText, perText, spanText } from './format.ts';

/** A window of a limit, and how full it is. */
export interface ShownWindow {
  readonly limit: 'route' | 'all-methods';
  readonly max: number;
  readonly used: number;
  readonly remaining: number;
  readonly durationMs: number;
  readonly resetMs: number;
  /** What it counts; undefined if it counts requests. */
  readonly unit?: string | undefined;
  /** Absent if it is the account's. */
  readonly group?: string | undefined;
}

/** A share from which a window is nearly full. */
const NEAR = 0.8;

/** Whether a window is almost full. */
export function isNear({ max, used, remaining }: ShownWindow): boolean {
  return remaining > 0 && used / max >= NEAR;
}

/**
 * One window as a bar: how much of it is used, and when it is over.
 * @param isPast it is as it was at an earlier request, so it may be over
 */
export function WindowBar({ window, isPast = false }: { window: ShownWindow; isPast?: boolean }) {
  const { limit, max, used, remaining, durationMs, unit, group } = window;
  const share = max === 0 ? 1 : used / max;
  const state = remaining <= 0 ? 'full' : isNear(window) ? 'near' : 'free';
  const name = `${limitName(limit, group)}, ${perText(max, durationMs, unit)}`;
  return (
    <div class={`window ${state}`}>
      <span class="window-name">{name}</span>
      <span class="window-used">
        {numberText(used)} of {numberText(max)}
      </span>
      {/* biome-ignore lint/a11y/useSemanticElements: each browser draws `meter` in its own way */}
      <div
        class="track"
        role="meter"
        aria-label={name}
        aria-valuemin={0}
        aria-valuemax={max}
        aria-valuenow={used}
        aria-valuetext={`${used} of ${max} used`}
      >
        <div class="fill" style={{ width: `${Math.min(100, share * 100)}%` }} />
      </div>
      <span class="window-reset soft">{isPast ? 'at its last such request' : endText(window)}</span>
    </div>
  );
}

function endText({ max, remaining, resetMs }: ShownWindow): string {
  if (max === 0) return 'never room';
  if (resetMs === 0) return 'not begun';
  return remaining <= 0 ? `room in ${spanText(resetMs)}` : `ends in ${spanText(resetMs)}`;
}
