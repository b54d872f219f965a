import { type Instance, maxAt, type WindowRow } from './history.ts';
import { formatMs } from './moments.ts';
import type { Scale } from './scale.ts';

/** A run of a window as a bar. */
export interface Bar {
  readonly x: number;
  readonly width: number;
  /** The path of what is used: it rises with each charge, and changes with the max. */
  readonly used: string;
  readonly isFull: boolean;
  /** What is used and when, as far as the bar has room for it. */
  readonly caption: string;
  readonly captionX: number;
}

/** The runs of a window that the timeline shows, in a track from `top` with the given height. */
export function barsOf(row: WindowRow, scale: Scale, top: number, height: number): readonly Bar[] {
  return row.instances
    .filter(({ startMs }) => startMs <= scale.spanMs)
    .map((instance) => {
      // A bar ends outside of the picture if its window ends after the span.
      const endX = scale.x(Math.min(instance.endMs, scale.spanMs * 1.2));
      const seenX = scale.x(Math.min(instance.endMs, scale.spanMs));
      const x = scale.x(instance.startMs);
      const used = instance.steps.at(-1)?.used ?? 0;
      const max = maxAt(row, instance.endMs - 1) ?? 0;
      return {
        x,
        width: endX - x,
        used: areaOf(row, instance, scale, top, height),
        isFull: used >= max,
        caption: captionOf(instance, `${used} of ${max}`, seenX - x),
        captionX: (x + seenX) / 2,
      };
    });
}

function areaOf(row: WindowRow, instance: Instance, scale: Scale, top: number, height: number): string {
  const endX = scale.x(Math.min(instance.endMs, scale.spanMs * 1.2));
  const moments = [
    ...instance.steps.map(({ atMs }) => atMs),
    ...row.maxes.map(({ fromMs }) => fromMs).filter((atMs) => instance.startMs < atMs && atMs < instance.endMs),
  ].sort((a, b) => a - b);
  const points = moments.map((atMs, index) => {
    const used = instance.steps.findLast((step) => step.atMs <= atMs)?.used ?? 0;
    const part = Math.min(1, used / (maxAt(row, atMs) || 1));
    const next = moments[index + 1];
    return `V${top + height * (1 - part)}H${next === undefined ? endX : scale.x(next)}`;
  });
  return `M${scale.x(instance.startMs)} ${top + height}${points.join('')}V${top + height}Z`;
}

function captionOf({ startMs, endMs }: Instance, used: string, room: number): string {
  const whole = `${used} · ${formatMs(startMs)} to ${formatMs(endMs)}`;
  if (room > 8 * whole.length) return whole;
  return room > 8 * used.length ? used : '';
}
